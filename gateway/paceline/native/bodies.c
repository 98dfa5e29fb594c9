/* The twins of `core/views_chat.py` and `core/only_model.py`: what is read of every chat's body, and
 * the one name that is changed in it. Bodies that say more than the usual are the law's to read. */
#include "fields.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#ifdef __SSE2__ /* of every 64-bit x86 */
#include <emmintrin.h>
#endif

/* Keys of a body and fields of the values made of it, in the order in which they are made. */
enum {
    MESSAGES,
    MODEL,
    STREAM,
    TEMPERATURE,
    MAX_TOKENS,
    MAX_COMPLETION_TOKENS,
    ROLE,
    CONTENT,
    NUM_KEYS
};
static const char *const KEYS[NUM_KEYS] = {
    "messages", "model",   "stream", "temperature", "max_tokens", "max_completion_tokens",
    "role",     "content",
};
static const char *const VIEW_FIELDS[] = {"endpoint", "model",      "stream",      "system",
                                          "turns",    "max_tokens", "temperature", "has_text"};
static const char *const TURN_FIELDS[] = {"role", "text"};
enum { NUM_VIEW_FIELDS = 8, NUM_TURN_FIELDS = 2 };

static const double GREATEST = 1e300; /* a temperature that counts, as `fields.number` has it */

typedef struct {
    PyObject *law_of_view, *law_of_name;
    PyObject *view, *turn; /* classes */
    PyObject *keys[NUM_KEYS], *view_fields, *turn_fields, *seldom_said, *empty, *line_feed;
    Py_ssize_t max_messages;
} State;

/* ---- a view ---------------------------------------------------------------------------------- */

/* A member of a dict with string keys: borrowed, NULL if it is not there. */
static PyObject *get(const State *self, PyObject *dict, int key) {
    return PyDict_GetItemWithError(dict, self->keys[key]);
}

static PyObject *or_none(PyObject *value) { return Py_NewRef(value == NULL ? Py_None : value); }

static PyObject *integer(PyObject *value) {
    return value != NULL && PyLong_CheckExact(value) ? value : NULL;
}

static PyObject *max_tokens(const State *self, PyObject *body) {
    PyObject *first = integer(get(self, body, MAX_COMPLETION_TOKENS));
    if (first != NULL && PyObject_IsTrue(first) == 1) return Py_NewRef(first);
    return or_none(integer(get(self, body, MAX_TOKENS)));
}

static PyObject *temperature(const State *self, PyObject *body) {
    PyObject *value = get(self, body, TEMPERATURE);
    if (value == NULL || (!PyFloat_CheckExact(value) && !PyLong_CheckExact(value))) Py_RETURN_NONE;
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL; /* there was no memory */
        PyErr_Clear(); /* an integer beyond any float */
        Py_RETURN_NONE;
    }
    if (!(fabs(number) < GREATEST)) Py_RETURN_NONE;
    return PyFloat_CheckExact(value) ? Py_NewRef(value) : PyFloat_FromDouble(number);
}

static bool is_system(PyObject *role) {
    return PyUnicode_CompareWithASCIIString(role, "system") == 0 ||
           PyUnicode_CompareWithASCIIString(role, "developer") == 0;
}

/* Adds a message to the texts of `system` or to the `turns`: 1, 0 if it is the law's to read, or -1
 * with an exception. */
static int add_message(const State *self, PyObject *message, PyObject *system, PyObject *turns,
                       bool *has_text) {
    if (!PyDict_CheckExact(message)) return 0;
    PyObject *role = get(self, message, ROLE), *text = get(self, message, CONTENT);
    if (role == NULL || text == NULL || !PyUnicode_CheckExact(role) || !PyUnicode_CheckExact(text))
        return 0;
    if (is_system(role)) return PyList_Append(system, text) < 0 ? -1 : 1;
    PyObject *fields[NUM_TURN_FIELDS] = {role, text};
    PyObject *turn = PyObject_Vectorcall(self->turn, fields, 0, self->turn_fields);
    if (turn == NULL) return -1;
    int failed = PyList_Append(turns, turn);
    Py_DECREF(turn);
    *has_text = *has_text || PyUnicode_GET_LENGTH(text) > 0;
    return failed < 0 ? -1 : 1;
}

static PyObject *joined(const State *self, PyObject *system) {
    if (PyList_GET_SIZE(system) == 0) return Py_NewRef(self->empty);
    if (PyList_GET_SIZE(system) == 1) return Py_NewRef(PyList_GET_ITEM(system, 0));
    return PyUnicode_Join(self->line_feed, system);
}

static PyObject *view_of(const State *self, PyObject *endpoint, PyObject *body, PyObject *system,
                         PyObject *turns, bool has_text) {
    PyObject *model = get(self, body, MODEL);
    PyObject *fields[NUM_VIEW_FIELDS] = {
        Py_NewRef(endpoint),
        Py_NewRef(model != NULL && PyUnicode_CheckExact(model) ? model : self->empty),
        Py_NewRef(get(self, body, STREAM) == Py_True ? Py_True : Py_False),
        joined(self, system),
        PyList_AsTuple(turns),
        max_tokens(self, body),
        temperature(self, body),
        Py_NewRef(has_text ? Py_True : Py_False),
    };
    PyObject *view = NULL;
    bool complete = true;
    for (int i = 0; i < NUM_VIEW_FIELDS; i++) complete = complete && fields[i] != NULL;
    if (complete) view = PyObject_Vectorcall(self->view, fields, 0, self->view_fields);
    for (int i = 0; i < NUM_VIEW_FIELDS; i++) Py_XDECREF(fields[i]);
    return view;
}

/* The messages of a body that says no more than usual; NULL for one that is the law's to read. */
static PyObject *usual_messages(const State *self, PyObject *body) {
    if (!PyDict_CheckExact(body)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->seldom_said); i++)
        if (PyDict_GetItemWithError(body, PyTuple_GET_ITEM(self->seldom_said, i)) != NULL)
            return NULL;
    PyObject *messages = get(self, body, MESSAGES);
    bool is_usual = messages != NULL && PyList_CheckExact(messages) &&
                    PyList_GET_SIZE(messages) <= self->max_messages;
    return is_usual ? messages : NULL;
}

static PyObject *chat_view(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    if (self->law_of_view == NULL || num_args != 2) {
        PyErr_SetString(PyExc_TypeError, "chat_view is configured, and takes two arguments");
        return NULL;
    }
    PyObject *messages = usual_messages(self, args[1]);
    if (messages == NULL) return PyObject_Vectorcall(self->law_of_view, args, 2, NULL);
    PyObject *system = PyList_New(0), *turns = PyList_New(0), *view = NULL;
    bool has_text = false;
    int done = system == NULL || turns == NULL ? -1 : 1;
    for (Py_ssize_t i = 0; done == 1 && i < PyList_GET_SIZE(messages); i++)
        done = add_message(self, PyList_GET_ITEM(messages, i), system, turns, &has_text);
    if (done == 1)
        view = view_of(self, args[0], args[1], system, turns, has_text);
    else if (done == 0)
        view = PyObject_Vectorcall(self->law_of_view, args, 2, NULL);
    Py_XDECREF(system);
    Py_XDECREF(turns);
    return view;
}

/* ---- a name ---------------------------------------------------------------------------------- */

#define MODEL_KEY "\"model\""
#define ESCAPED "\\u006"
#define SIZE_OF(mark) ((Py_ssize_t)sizeof(mark) - 1)

/* Where a mark stands from `at` on, or NULL. Sixteen places at a time are asked for its first and
 * last byte: quotes and backslashes alone are frequent in what models are asked, and a search for
 * one of them would stop at each. */
static const char *find(const char *at, const char *end, const char *mark, Py_ssize_t size) {
#ifdef __SSE2__
    const __m128i first = _mm_set1_epi8(mark[0]), last = _mm_set1_epi8(mark[size - 1]);
    for (; end - at >= size - 1 + 16; at += 16) {
        __m128i begins = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), first);
        __m128i ends = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + size - 1)), last);
        unsigned places = (unsigned)_mm_movemask_epi8(_mm_and_si128(begins, ends));
        for (; places != 0; places &= places - 1) {
            const char *place = at + __builtin_ctz(places);
            if (memcmp(place, mark, (size_t)size) == 0) return place;
        }
    }
#endif
    for (; end - at >= size; at++) {
        at = memchr(at, mark[0], (size_t)(end - at - size + 1));
        if (at == NULL) return NULL;
        if (memcmp(at, mark, (size_t)size) == 0) return at;
    }
    return NULL;
}

static PyObject *renamed(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    if (self->law_of_name == NULL || num_args != 2) {
        PyErr_SetString(PyExc_TypeError, "renamed is configured, and takes two arguments");
        return NULL;
    }
    if (!PyBytes_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]))
        return PyObject_Vectorcall(self->law_of_name, args, 2, NULL);
    const char *raw = PyBytes_AS_STRING(args[0]), *end = raw + PyBytes_GET_SIZE(args[0]);
    const char *key = find(raw, end, MODEL_KEY, SIZE_OF(MODEL_KEY));
    if (key == NULL || find(key + 1, end, MODEL_KEY, SIZE_OF(MODEL_KEY)) != NULL ||
        find(raw, end, ESCAPED, SIZE_OF(ESCAPED)) != NULL)
        Py_RETURN_NONE;
    const char *at = key + SIZE_OF(MODEL_KEY);
    while (at < end && Py_ISSPACE(*at)) at++;
    if (at == end || *at++ != ':') Py_RETURN_NONE;
    while (at < end && Py_ISSPACE(*at)) at++;
    if (at == end || *at != '"') Py_RETURN_NONE;
    const char *start = at++;
    while (at < end && *at != '"' && *at != '\\') at++;
    if (at == end || *at == '\\') Py_RETURN_NONE;
    at++;
    Py_ssize_t before = start - raw, name = PyBytes_GET_SIZE(args[1]), after = end - at;
    PyObject *made = PyBytes_FromStringAndSize(NULL, before + name + after);
    if (made == NULL) return NULL;
    char *to = PyBytes_AS_STRING(made);
    memcpy(to, raw, (size_t)before);
    memcpy(to + before, PyBytes_AS_STRING(args[1]), (size_t)name);
    memcpy(to + before + name, at, (size_t)after);
    return made;
}

/* ---- the module ------------------------------------------------------------------------------ */

/* Every object that the state holds; `f` is told of each. */
static int each_object(State *self, int (*f)(PyObject **, void *), void *arg) {
    PyObject **objects[] = {
        &self->law_of_view, &self->law_of_name, &self->view,  &self->turn,      &self->view_fields,
        &self->turn_fields, &self->seldom_said, &self->empty, &self->line_feed,
    };
    int told = 0;
    for (size_t i = 0; told == 0 && i < sizeof objects / sizeof *objects; i++)
        told = f(objects[i], arg);
    for (int i = 0; told == 0 && i < NUM_KEYS; i++) told = f(&self->keys[i], arg);
    return told;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    return each_object(PyModule_GetState(module), visited, &(Visitor){visit, arg});
}

static int clear(PyObject *module) { return each_object(PyModule_GetState(module), cleared, NULL); }

static void release(void *module) { clear(module); }

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *views, *names;
    if (!PyArg_ParseTuple(args, "OO", &views, &names)) return NULL;
    clear(module);
    PyObject *seldom = NULL, *most = NULL;
    if (take(&seldom, views, "SELDOM_SAID") && take(&most, views, "MAX_MESSAGES") &&
        take(&self->view, views, "RequestView") && take(&self->turn, views, "Turn") &&
        take(&self->law_of_view, views, "chat_view") &&
        take(&self->law_of_name, names, "renamed")) {
        self->max_messages = PyLong_AsSsize_t(most);
        self->seldom_said = PySequence_Tuple(seldom);
    }
    Py_XDECREF(seldom);
    Py_XDECREF(most);
    if (self->seldom_said == NULL) {
        clear(module);
        return NULL;
    }
    self->view_fields = names_of(VIEW_FIELDS, NUM_VIEW_FIELDS);
    self->turn_fields = names_of(TURN_FIELDS, NUM_TURN_FIELDS);
    self->empty = PyUnicode_FromString("");
    self->line_feed = PyUnicode_FromString("\n");
    for (int i = 0; i < NUM_KEYS; i++) self->keys[i] = PyUnicode_InternFromString(KEYS[i]);
    if (PyErr_Occurred()) {
        clear(module);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS, "Takes the two modules of the laws."},
    {"chat_view", (PyCFunction)(void (*)(void))chat_view, METH_FASTCALL,
     "As `paceline.core.views_chat.chat_view`."},
    {"renamed", (PyCFunction)(void (*)(void))renamed, METH_FASTCALL,
     "As `paceline.core.only_model.renamed`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "bodies",
    "The twins of what reads and renames bodies.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    release,
};

PyMODINIT_FUNC PyInit_bodies(void) { return PyModuleDef_Init(&MODULE); }
