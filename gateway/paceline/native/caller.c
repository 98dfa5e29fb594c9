/* The twin of `core/caller.py`'s `caller_of`, for requests without headers of ours, sessions, a cache
 * key and tools; of all others the law says who is calling, or refuses them. */
#include "fields.h"

#include <stdbool.h>

enum { KEY_NAME, HEADERS, WORKLOAD, PRIORITY, CONVERSATION, REQUEST_ID, TEMPLATE, NUM_FIELDS };
static const char *const FIELDS[NUM_FIELDS] = {
    "key_name", "headers", "workload", "priority", "conversation", "request_id", "template",
};

typedef struct {
    PyObject *law, *view, *turn, *caller; /* a function, and classes */
    PyObject *interactive, *sessions, *ours, *cache_key, *user, *none, *zero, *fields;
    Py_ssize_t most_chars, view_turns, view_system, view_num_tools, turn_role, turn_text;
} State;

static bool is_text(PyObject *value) { return value != NULL && PyUnicode_CheckExact(value); }

/* Whether no header is one of ours, or says which session it is. */
static bool has_usual_headers(const State *self, PyObject *headers) {
    PyObject *name;
    for (Py_ssize_t at = 0; PyDict_Next(headers, &at, &name, NULL);)
        if (!is_text(name) || PyUnicode_Tailmatch(name, self->ours, 0, PY_SSIZE_T_MAX, -1) != 0)
            return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->sessions); i++)
        if (PyDict_GetItemWithError(headers, PyTuple_GET_ITEM(self->sessions, i)) != NULL)
            return false;
    return true;
}

/* The text of the first turn of the user, borrowed; none if there is none; NULL if a turn is none. */
static PyObject *first_of_user(const State *self, PyObject *turns) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(turns); i++) {
        PyObject *turn = PyTuple_GET_ITEM(turns, i);
        if ((PyObject *)Py_TYPE(turn) != self->turn) return NULL;
        PyObject *role = field_at(turn, self->turn_role);
        if (is_text(role) && PyUnicode_Compare(role, self->user) == 0)
            return field_at(turn, self->turn_text);
    }
    return self->none;
}

/* `f"{key_name or ''}\0{model}\0{text}"`, or nothing if the text is. */
static PyObject *conversation_of(const State *self, PyObject *key_name, PyObject *model,
                                 PyObject *text) {
    Py_ssize_t size = PyUnicode_GET_LENGTH(text), at = 0;
    if (size == 0) return Py_NewRef(self->none);
    if (size > self->most_chars) size = self->most_chars;
    PyObject *parts[] = {key_name == Py_None ? self->none : key_name, self->zero, model, self->zero,
                         text};
    enum { NUM_PARTS = sizeof parts / sizeof *parts };
    Py_ssize_t total = size;
    Py_UCS4 greatest = PyUnicode_MAX_CHAR_VALUE(text);
    for (int i = 0; i < NUM_PARTS - 1; i++) {
        total += PyUnicode_GET_LENGTH(parts[i]);
        Py_UCS4 one = PyUnicode_MAX_CHAR_VALUE(parts[i]);
        if (one > greatest) greatest = one;
    }
    if (size < PyUnicode_GET_LENGTH(text) && greatest > 127) return NULL; /* what is cut decides */
    PyObject *made = PyUnicode_New(total, greatest);
    for (int i = 0; made != NULL && i < NUM_PARTS; i++) {
        Py_ssize_t length = i == NUM_PARTS - 1 ? size : PyUnicode_GET_LENGTH(parts[i]);
        if (PyUnicode_CopyCharacters(made, at, parts[i], 0, length) < 0) Py_CLEAR(made);
        at += length;
    }
    return made;
}

static PyObject *template_of(PyObject *key_name, PyObject *model, PyObject *system) {
    if (PyUnicode_GET_LENGTH(system) == 0) return PyLong_FromLong(0);
    PyObject *shared = PyTuple_Pack(3, key_name, model, system);
    if (shared == NULL) return NULL;
    Py_hash_t hash = PyObject_Hash(shared);
    Py_DECREF(shared);
    return hash == -1 && PyErr_Occurred() ? NULL : PyLong_FromSsize_t(hash);
}

/* The caller; NULL with an exception, or without one if it is the law's to say. */
static PyObject *usual_caller(const State *self, PyObject *const *args) {
    PyObject *view = args[0], *body = args[1], *headers = args[2], *key_name = args[3];
    PyObject *model = args[4], *request_id = args[5];
    if ((PyObject *)Py_TYPE(view) != self->view || !PyDict_CheckExact(body) ||
        !PyDict_CheckExact(headers) || (key_name != Py_None && !is_text(key_name)) ||
        !is_text(model) || !PyBool_Check(args[6]) || !has_usual_headers(self, headers) ||
        PyDict_GetItemWithError(body, self->cache_key) != NULL)
        return NULL;
    PyObject *turns = field_at(view, self->view_turns), *system = field_at(view, self->view_system);
    PyObject *num_tools = field_at(view, self->view_num_tools);
    if (turns == NULL || !PyTuple_CheckExact(turns) || !is_text(system) || num_tools == NULL ||
        !PyLong_CheckExact(num_tools) || PyObject_IsTrue(num_tools) != 0)
        return NULL;
    PyObject *text = first_of_user(self, turns);
    if (!is_text(text)) return NULL;
    PyObject *conversation = conversation_of(self, key_name, model, text);
    if (conversation == NULL) return NULL;
    PyObject *template =
        args[6] == Py_True ? template_of(key_name, model, system) : PyLong_FromLong(0);
    PyObject *caller = NULL;
    if (template != NULL) {
        PyObject *fields[NUM_FIELDS] = {
            [KEY_NAME] = key_name,         [HEADERS] = headers,
            [WORKLOAD] = Py_None,          [PRIORITY] = self->interactive,
            [CONVERSATION] = conversation, [REQUEST_ID] = request_id,
            [TEMPLATE] = template,
        };
        caller = PyObject_Vectorcall(self->caller, fields, 0, self->fields);
    }
    Py_XDECREF(template);
    Py_DECREF(conversation);
    return caller;
}

static PyObject *caller_of(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    if (self->law == NULL || num_args != 7) {
        PyErr_SetString(PyExc_TypeError, "caller_of is configured, and takes seven arguments");
        return NULL;
    }
    PyObject *caller = usual_caller(self, args);
    if (caller != NULL || PyErr_Occurred()) return caller;
    return PyObject_Vectorcall(self->law, args, (size_t)num_args, NULL);
}

/* ---- the module ------------------------------------------------------------------------------ */

#define OBJECTS(X) \
    X(law) X(view) X(turn) X(caller) X(interactive) X(sessions) X(ours) X(cache_key) X(user) \
    X(none) X(zero) X(fields)
#define VISITED(name) Py_VISIT(self->name);
#define CLEARED(name) Py_CLEAR(self->name);

static int traverse(PyObject *module, visitproc visit, void *arg) {
    State *self = PyModule_GetState(module);
    OBJECTS(VISITED)
    return 0;
}

static int clear(PyObject *module) {
    State *self = PyModule_GetState(module);
    OBJECTS(CLEARED)
    return 0;
}

static void release(void *module) { clear(module); }

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law, *types;
    if (!PyArg_ParseTuple(args, "OO", &law, &types)) return NULL;
    clear(module);
    PyObject *priorities = PyObject_GetAttrString(types, "Priority");
    if (priorities == NULL) return NULL;
    int is_there = take(&self->interactive, priorities, "INTERACTIVE");
    Py_DECREF(priorities);
    PyObject *most = NULL;
    if (!is_there || !take(&self->view, types, "RequestView") ||
        !take(&self->turn, types, "Turn") || !take(&self->caller, types, "Caller") ||
        !take(&self->sessions, law, "SESSION_HEADERS") || !take(&self->ours, law, "OURS") ||
        !take(&most, law, "MAX_CONVERSATION_CHARS"))
        return NULL;
    self->most_chars = PyLong_AsSsize_t(most);
    Py_DECREF(most);
    self->cache_key = PyUnicode_InternFromString("prompt_cache_key");
    self->user = PyUnicode_InternFromString("user");
    self->none = PyUnicode_FromString("");
    self->zero = PyUnicode_FromStringAndSize("\0", 1);
    self->fields = names_of(FIELDS, NUM_FIELDS);
    if (PyErr_Occurred() || !PyTuple_CheckExact(self->sessions)) return NULL;
    if ((self->view_turns = field_offset(self->view, "turns")) < 0 ||
        (self->view_system = field_offset(self->view, "system")) < 0 ||
        (self->view_num_tools = field_offset(self->view, "num_tools")) < 0 ||
        (self->turn_role = field_offset(self->turn, "role")) < 0 ||
        (self->turn_text = field_offset(self->turn, "text")) < 0)
        return NULL;
    if (!take(&self->law, law, "caller_of")) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS, "Takes the law's module, and that of its types."},
    {"caller_of", (PyCFunction)(void (*)(void))caller_of, METH_FASTCALL,
     "As `paceline.core.caller.caller_of`, by position."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "caller",
    "The twin of `paceline.core.caller`.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    release,
};

PyMODINIT_FUNC PyInit_caller(void) { return PyModuleDef_Init(&MODULE); }
