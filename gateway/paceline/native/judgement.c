/* The twin of `core/judge.py`: the same sums in the same order. What is not as usual (a weight of
 * another shape, a size without a number) is the law's to answer, or to refuse. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

#include "fields.h"

enum { CODE, CHAT, EDIT, ADDS, NUM_SUMS };
enum { NUM_TERMS = 7 };

typedef struct {
    PyObject *law;
    double least_log;
} State;

/* Adds a signal's weight, or the bias; false if it is none. */
static int add(PyObject *weight, double *sums) {
    if (!PyTuple_CheckExact(weight) || PyTuple_GET_SIZE(weight) != NUM_SUMS + 1) return 0;
    for (int i = 0; i < NUM_SUMS; i++) {
        double value;
        if (!as_double(PyTuple_GET_ITEM(weight, i), &value)) return 0;
        sums[i] += value;
    }
    return 1;
}

/* 1 if all signals were added, 0 if it is the law's to do, -1 with an exception. */
static int add_signals(PyObject *signals, PyObject *weights, double *sums) {
    PyObject *each = PyObject_GetIter(signals), *signal;
    if (each == NULL) return -1;
    int done = 1;
    while (done == 1 && (signal = PyIter_Next(each)) != NULL) {
        PyObject *weight = PyDict_GetItemWithError(weights, signal);
        if (weight != NULL)
            done = add(weight, sums);
        else if (PyErr_Occurred())
            done = -1;
        Py_DECREF(signal);
    }
    Py_DECREF(each);
    return PyErr_Occurred() ? -1 : done;
}

static double at_least(double value, double least) { return least > value ? least : value; }

/* The log-odds of a high copy ratio; false if there are other weights than terms. */
static int odds_of(PyObject *share, const double *logs, double band, double least_log,
                   double *odds) {
    double edit = exp(logs[EDIT]), size = band / 8.0;
    double terms[NUM_TERMS] = {
        1.0,
        edit,
        size,
        edit * size,
        at_least(logs[CODE], least_log),
        at_least(logs[CHAT], least_log),
        at_least(logs[EDIT], least_log),
    };
    if (!PyTuple_CheckExact(share) || PyTuple_GET_SIZE(share) != NUM_TERMS) return 0;
    *odds = 0.0;
    for (int i = 0; i < NUM_TERMS; i++) {
        double weight;
        if (!as_double(PyTuple_GET_ITEM(share, i), &weight)) return 0;
        *odds += weight * terms[i];
    }
    return 1;
}

static PyObject *judge(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    double sums[NUM_SUMS] = {0.0, 0.0, 0.0, 0.0}, logs[3], band, odds;
    if (self->law == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    int done = num_args == 5 && PyFrozenSet_CheckExact(args[0]) && PyDict_CheckExact(args[1]) &&
               add(args[2], sums) && as_double(args[3], &band);
    if (done) done = add_signals(args[0], args[1], sums);
    if (done < 0) return NULL;
    if (done) {
        double highest = sums[CODE];
        if (sums[CHAT] > highest) highest = sums[CHAT];
        if (sums[EDIT] > highest) highest = sums[EDIT];
        double total = highest + log(exp(sums[CODE] - highest) + exp(sums[CHAT] - highest) +
                                     exp(sums[EDIT] - highest));
        for (int i = 0; i < 3; i++) logs[i] = sums[i] - total;
        done = odds_of(args[4], logs, band, self->least_log, &odds);
    }
    if (!done) return PyObject_Vectorcall(self->law, args, (size_t)num_args, NULL);
    return Py_BuildValue("(ddd)dd", logs[CODE], logs[CHAT], logs[EDIT], sums[ADDS], odds);
}

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law;
    if (!PyArg_ParseTuple(args, "Od", &law, &self->least_log)) return NULL;
    Py_XSETREF(self->law, PyObject_GetAttrString(law, "judge"));
    if (self->law == NULL) return NULL;
    Py_RETURN_NONE;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    Py_VISIT(((State *)PyModule_GetState(module))->law);
    return 0;
}

static int clear(PyObject *module) {
    Py_CLEAR(((State *)PyModule_GetState(module))->law);
    return 0;
}

static void finish(void *module) { clear(module); }

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS, "Takes the law, and the least log that counts."},
    {"judge", (PyCFunction)(void (*)(void))judge, METH_FASTCALL,
     "As `paceline.core.judge.judge`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "judgement", "The twin of `paceline.core.judge`.", sizeof(State),
    METHODS, SLOTS, traverse, clear, finish,
};

PyMODINIT_FUNC PyInit_judgement(void) { return PyModuleDef_Init(&MODULE); }
