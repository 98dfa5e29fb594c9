/* The twin of `core/features.py`: its `measure`, for requests whose last user turn is their first.
 *
 * What is asked beside that turn's text and a system text (tools, a suffix, a short answer), turns
 * before it and the results of tools after it are the law's to measure. */
#include "fields.h"

#include <string.h>

enum { VIEW, TURN, FEATURES, NUM_CLASSES };
enum { NONE, CODE, SENTENCE, TEXT, NUM_MATERIALS };

static const char *const MATERIALS[NUM_MATERIALS] = {"none", "code", "sentence", "text"};
static const char *const MADE_FIELDS[] = {"view", "material", "material_chars", "prompt_chars",
                                          "signals"};
enum { NUM_MADE_FIELDS = sizeof MADE_FIELDS / sizeof *MADE_FIELDS };

#define FIELDS(X) \
    X(VIEW, system) X(VIEW, turns) X(VIEW, suffix) X(VIEW, prediction) X(VIEW, num_tools) \
    X(VIEW, response_format) X(VIEW, max_tokens) \
    X(TURN, role) X(TURN, text)

#define AS_MEMBER(class, name) Py_ssize_t class##_##name;
#define LOOKED_UP(class, name) \
    if ((self->class##_##name = field_offset(self->classes[class], #name)) < 0) return NULL;
#define GET(value, field) field_at(value, self->field)

typedef struct {
    PyObject *law, *look, *system_signals;
    PyObject *classes[NUM_CLASSES], *materials[NUM_MATERIALS];
    PyObject *made_fields, *empty, *zero, *union_name;
    Py_ssize_t system_chars, min_material_chars, short_material_chars;
    long short_answer_tokens;
    FIELDS(AS_MEMBER)
} State;

static int is_a(const State *self, PyObject *value, int class) {
    return value != NULL && (PyObject *)Py_TYPE(value) == self->classes[class];
}

static int is_text(PyObject *value) { return value != NULL && PyUnicode_CheckExact(value); }

/* ---- what is usual --------------------------------------------------------------------------- */

/* Whether a request asks for nothing beside its texts. There is one empty string and one 0, so what
 * is equal to either without being it is the law's to see. */
static int asks_nothing_else(const State *self, PyObject *view) {
    PyObject *max_tokens = GET(view, VIEW_max_tokens);
    if (GET(view, VIEW_suffix) != self->empty || GET(view, VIEW_prediction) != self->empty ||
        GET(view, VIEW_num_tools) != self->zero || GET(view, VIEW_response_format) != Py_None)
        return 0;
    if (max_tokens == Py_None) return 1;
    if (max_tokens == NULL || !PyLong_CheckExact(max_tokens)) return 0;
    int overflow;
    long number = PyLong_AsLongAndOverflow(max_tokens, &overflow);
    return overflow > 0 || (overflow == 0 && number > self->short_answer_tokens);
}

static int says(PyObject *role, const char *name) {
    size_t size = strlen(name);
    return PyUnicode_IS_COMPACT_ASCII(role) && (size_t)PyUnicode_GET_LENGTH(role) == size &&
           memcmp(PyUnicode_1BYTE_DATA(role), name, size) == 0;
}

/* The text of the last user turn, borrowed, and the characters of all; NULL if that turn is not the
 * first, or if a tool answered it. */
static PyObject *asked_text(const State *self, PyObject *turns, Py_ssize_t *num_chars) {
    if (turns == NULL || !PyTuple_CheckExact(turns)) return NULL;
    PyObject *asked = self->empty;
    for (Py_ssize_t i = PyTuple_GET_SIZE(turns) - 1; i >= 0; i--) {
        PyObject *turn = PyTuple_GET_ITEM(turns, i);
        if (!is_a(self, turn, TURN)) return NULL;
        PyObject *role = GET(turn, TURN_role), *text = GET(turn, TURN_text);
        if (!is_text(role) || !is_text(text) || says(role, "tool")) return NULL;
        *num_chars += PyUnicode_GET_LENGTH(text);
        if (!says(role, "user")) continue;
        if (i > 0) return NULL;
        asked = text;
    }
    return asked;
}

/* ---- what is measured ------------------------------------------------------------------------ */

/* `signals` and those of a system text, owned. */
static PyObject *with_system(const State *self, PyObject *signals, PyObject *system) {
    if (PyUnicode_GET_LENGTH(system) == 0) return Py_NewRef(signals);
    PyObject *head = PyUnicode_Substring(system, 0, self->system_chars);
    if (head == NULL) return NULL;
    PyObject *others = PyObject_Vectorcall(self->system_signals, &head, 1, NULL), *all = NULL;
    Py_DECREF(head);
    if (others == NULL) return NULL;
    if (PyTuple_CheckExact(others) && PyTuple_GET_SIZE(others) == 0) {
        all = Py_NewRef(signals);
    } else {
        PyObject *both[] = {signals, others};
        all = PyObject_VectorcallMethod(self->union_name, both, 2, NULL);
    }
    Py_DECREF(others);
    return all;
}

static int material_of(const State *self, Py_ssize_t num_chars, int is_code) {
    if (num_chars <= self->min_material_chars) return NONE;
    if (is_code) return CODE;
    return num_chars <= self->short_material_chars ? SENTENCE : TEXT;
}

/* Whether a look is one, as the law's type says. */
static int is_look(PyObject *seen) {
    return PyTuple_CheckExact(seen) && PyTuple_GET_SIZE(seen) == 4 &&
           is_text(PyTuple_GET_ITEM(seen, 0)) && is_text(PyTuple_GET_ITEM(seen, 1)) &&
           PyBool_Check(PyTuple_GET_ITEM(seen, 2)) &&
           PyFrozenSet_CheckExact(PyTuple_GET_ITEM(seen, 3));
}

static PyObject *features_of(const State *self, PyObject *view, PyObject *text, PyObject *seen,
                             Py_ssize_t prompt_chars) {
    Py_ssize_t given = PyUnicode_GET_LENGTH(text) -
                       PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(seen, 0)) -
                       PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(seen, 1));
    int material = material_of(self, given, PyTuple_GET_ITEM(seen, 2) == Py_True);
    PyObject *signals = with_system(self, PyTuple_GET_ITEM(seen, 3), GET(view, VIEW_system));
    if (signals == NULL) return NULL;
    PyObject *fields[NUM_MADE_FIELDS] = {
        view,
        self->materials[material],
        PyLong_FromSsize_t(material == NONE ? 0 : given),
        PyLong_FromSsize_t(prompt_chars),
        signals,
    };
    PyObject *made = NULL;
    if (fields[2] != NULL && fields[3] != NULL)
        made = PyObject_Vectorcall(self->classes[FEATURES], fields, 0, self->made_fields);
    for (int i = 2; i < NUM_MADE_FIELDS; i++) Py_XDECREF(fields[i]);
    return made;
}

static PyObject *measure(PyObject *module, PyObject *view) {
    const State *self = PyModule_GetState(module);
    if (self->law == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    PyObject *text = NULL;
    Py_ssize_t prompt_chars = 0;
    if (is_a(self, view, VIEW) && is_text(GET(view, VIEW_system)) &&
        asks_nothing_else(self, view)) {
        prompt_chars = PyUnicode_GET_LENGTH(GET(view, VIEW_system));
        text = asked_text(self, GET(view, VIEW_turns), &prompt_chars);
    }
    if (text == NULL) return PyObject_CallOneArg(self->law, view);
    PyObject *asked[] = {text, Py_True}; /* no turn stands before it */
    PyObject *seen = PyObject_Vectorcall(self->look, asked, 2, NULL);
    if (seen == NULL) return NULL;
    PyObject *made = is_look(seen) ? features_of(self, view, text, seen, prompt_chars)
                                   : PyObject_CallOneArg(self->law, view);
    Py_DECREF(seen);
    return made;
}

/* ---- the module ------------------------------------------------------------------------------ */

/* Every object that the state holds; `f` is told of each. */
static int each_object(State *self, int (*f)(PyObject **, void *), void *arg) {
    PyObject **objects[] = {
        &self->law,   &self->look, &self->system_signals, &self->made_fields,
        &self->empty, &self->zero, &self->union_name,
    };
    int told = 0;
    for (size_t i = 0; told == 0 && i < sizeof objects / sizeof *objects; i++)
        told = f(objects[i], arg);
    for (int i = 0; told == 0 && i < NUM_CLASSES; i++) told = f(&self->classes[i], arg);
    for (int i = 0; told == 0 && i < NUM_MATERIALS; i++) told = f(&self->materials[i], arg);
    return told;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    return each_object(PyModule_GetState(module), visited, &(Visitor){visit, arg});
}

static int clear(PyObject *module) { return each_object(PyModule_GetState(module), cleared, NULL); }

static void finish(void *module) { clear(module); }

static PyObject *take_number(PyObject *numbers, const char *name, Py_ssize_t *found) {
    PyObject *value = PyMapping_GetItemString(numbers, name);
    if (value == NULL) return NULL;
    *found = PyLong_AsSsize_t(value);
    Py_DECREF(value);
    return PyErr_Occurred() ? NULL : numbers;
}

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law, *look, *system_signals, *types, *numbers;
    Py_ssize_t short_answer;
    if (!PyArg_ParseTuple(args, "OOOOO", &law, &look, &system_signals, &types, &numbers))
        return NULL;
    clear(module);
    if (!take_number(numbers, "system_chars", &self->system_chars) ||
        !take_number(numbers, "min_material_chars", &self->min_material_chars) ||
        !take_number(numbers, "short_material_chars", &self->short_material_chars) ||
        !take_number(numbers, "short_answer_tokens", &short_answer))
        return NULL;
    self->short_answer_tokens = (long)short_answer;
    static const char *const classes[NUM_CLASSES] = {"RequestView", "Turn", "RequestFeatures"};
    for (int i = 0; i < NUM_CLASSES; i++)
        if ((self->classes[i] = PyObject_GetAttrString(types, classes[i])) == NULL) return NULL;
    FIELDS(LOOKED_UP)
    PyObject *material = PyObject_GetAttrString(types, "Material");
    if (material == NULL) return NULL;
    int are_there = 1;
    for (int i = 0; are_there && i < NUM_MATERIALS; i++) {
        self->materials[i] = PyObject_CallFunction(material, "s", MATERIALS[i]);
        are_there = self->materials[i] != NULL;
    }
    Py_DECREF(material);
    if (!are_there) return NULL;
    self->made_fields = names_of(MADE_FIELDS, NUM_MADE_FIELDS);
    self->empty = PyUnicode_FromString("");
    self->zero = PyLong_FromLong(0);
    self->union_name = PyUnicode_InternFromString("union");
    if (PyErr_Occurred()) return NULL;
    self->look = Py_NewRef(look);
    self->system_signals = Py_NewRef(system_signals);
    self->law = Py_NewRef(law); /* the last, so that it tells whether all is there */
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS,
     "Takes the law, what it asks of texts, its classes and its numbers."},
    {"measure", measure, METH_O, "As `paceline.core.features.measure`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "features",
    "The twin of `paceline.core.features`.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    finish,
};

PyMODINIT_FUNC PyInit_features(void) { return PyModuleDef_Init(&MODULE); }
