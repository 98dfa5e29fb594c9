/* What the twins share, above all: fields of frozen values, read where they lie.
 *
 * A value's class says at which offset it keeps each field; a read through it costs as much as one
 * from a struct of C, where asking for an attribute by name would cost more than what is reckoned
 * with it. Offsets are asked for once, and hold for values of exactly that class. */
#ifndef PACELINE_FIELDS_H
#define PACELINE_FIELDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* Where `type` keeps the field `name`; -1 and an exception if it has no such field. */
static inline Py_ssize_t field_offset(PyObject *type, const char *name) {
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL) return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX || member->type == T_OBJECT) offset = member->offset;
    }
    Py_DECREF(found);
    if (offset < 0) PyErr_Format(PyExc_ImportError, "%R keeps no field %s", type, name);
    return offset;
}

/* The field at an offset: borrowed, and NULL where it is not set. */
static inline PyObject *field_at(PyObject *value, Py_ssize_t offset) {
    return *(PyObject **)((char *)value + offset);
}

/* A float or an int as a double; false for anything else, and for an int that no double can hold. */
static inline int as_double(PyObject *value, double *found) {
    if (value == NULL) return 0;
    if (PyFloat_CheckExact(value)) {
        *found = PyFloat_AS_DOUBLE(value);
        return 1;
    }
    if (!PyLong_CheckExact(value)) return 0;
    *found = PyLong_AsDouble(value);
    if (*found == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* Keeps an attribute in a module's state; false with an exception. Then nothing more is to be asked
 * for: a lookup that finds an exception set may forget it. */
static inline int take(PyObject **kept, PyObject *from, const char *name) {
    PyObject *found = PyObject_GetAttrString(from, name);
    if (found == NULL) return 0;
    Py_XSETREF(*kept, found);
    return 1;
}

/* A tuple of interned names, such as a call by keywords takes. */
static inline PyObject *names_of(const char *const *names, Py_ssize_t size) {
    PyObject *tuple = PyTuple_New(size);
    for (Py_ssize_t i = 0; tuple != NULL && i < size; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (name == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, name);
    }
    return tuple;
}

/* What a module's state holds, told one by one to what clears it, or visits it for the collector. */
static inline int cleared(PyObject **object, void *arg) {
    (void)arg;
    Py_CLEAR(*object);
    return 0;
}

typedef struct {
    visitproc visit;
    void *arg;
} Visitor;

static inline int visited(PyObject **object, void *arg) {
    Visitor *visitor = arg;
    return *object == NULL ? 0 : visitor->visit(*object, visitor->arg);
}

#endif
