/* HTTP/1.1 heads of the usual, plain form, read in one pass: see `edge/heads.py`.
 *
 * What is accepted here is a small part of the grammar, all of which httptools reads in the same
 * way. Everything else, be it wrong or merely unusual, is None, and then httptools' to read: it
 * alone decides what is refused. So nothing here may be lenient, and what a field may say of where
 * a message ends is one Content-Length in plain digits, and `keep-alive`.
 *
 * Reading needs no bounds beside the data: a bytes object ends in a NUL that is not counted, every
 * step stops at a NUL, and none looks beyond a byte that it has not seen.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>

enum {
    MAX_HEAD_BYTES = 16 * 1024, /* the parser's bounds are wider: what is long is unusual */
    MAX_FIELDS = 64,
    MAX_NAME_BYTES = 64,
    MAX_LENGTH_DIGITS = 15,
    NUM_SLOTS = 256, /* a power of two, well above the number of known names */
};

typedef enum { PLAIN, HOST, CONTENT_LENGTH, CONNECTION, UNUSUAL } Meaning;

/* Names for which no object is made each time, and those that mean something to us. */
static const struct {
    const char *name;
    Meaning meaning;
} KNOWN[] = {
    {"host", HOST},
    {"content-length", CONTENT_LENGTH},
    {"connection", CONNECTION},
    {"transfer-encoding", UNUSUAL},
    {"upgrade", UNUSUAL},
    {"expect", UNUSUAL},
    {"te", UNUSUAL},
    {"trailer", UNUSUAL},
    {"proxy-connection", UNUSUAL},
    {"http2-settings", UNUSUAL},
    {"accept", PLAIN},
    {"accept-encoding", PLAIN},
    {"accept-language", PLAIN},
    {"anthropic-beta", PLAIN},
    {"anthropic-version", PLAIN},
    {"authorization", PLAIN},
    {"cache-control", PLAIN},
    {"content-encoding", PLAIN},
    {"content-type", PLAIN},
    {"cookie", PLAIN},
    {"date", PLAIN},
    {"keep-alive", PLAIN},
    {"openai-organization", PLAIN},
    {"openai-processing-ms", PLAIN},
    {"openai-project", PLAIN},
    {"origin", PLAIN},
    {"referer", PLAIN},
    {"sec-fetch-dest", PLAIN},
    {"sec-fetch-mode", PLAIN},
    {"sec-fetch-site", PLAIN},
    {"server", PLAIN},
    {"traceparent", PLAIN},
    {"tracestate", PLAIN},
    {"user-agent", PLAIN},
    {"vary", PLAIN},
    {"x-api-key", PLAIN},
    {"x-forwarded-for", PLAIN},
    {"x-forwarded-host", PLAIN},
    {"x-forwarded-proto", PLAIN},
    {"x-paceline-explain", PLAIN},
    {"x-paceline-hints", PLAIN},
    {"x-paceline-priority", PLAIN},
    {"x-paceline-session", PLAIN},
    {"x-paceline-workload", PLAIN},
    {"x-real-ip", PLAIN},
    {"x-request-id", PLAIN},
    {"x-session-id", PLAIN},
    {"x-stainless-arch", PLAIN},
    {"x-stainless-async", PLAIN},
    {"x-stainless-lang", PLAIN},
    {"x-stainless-os", PLAIN},
    {"x-stainless-package-version", PLAIN},
    {"x-stainless-raw-response", PLAIN},
    {"x-stainless-read-timeout", PLAIN},
    {"x-stainless-retry-count", PLAIN},
    {"x-stainless-runtime", PLAIN},
    {"x-stainless-runtime-version", PLAIN},
    {"x-stainless-timeout", PLAIN},
};
static const char *const METHODS[] = {"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"};

enum {
    NUM_KNOWN = sizeof KNOWN / sizeof *KNOWN,
    NUM_METHODS = sizeof METHODS / sizeof *METHODS,
};

/* The characters of a token (RFC 9110 §5.6.2), in lower case; 0 for all others. */
static const unsigned char TOKEN[256] = {
    ['!'] = '!', ['#'] = '#', ['$'] = '$', ['%'] = '%', ['&'] = '&', ['\''] = '\'', ['*'] = '*',
    ['+'] = '+', ['-'] = '-', ['.'] = '.', ['^'] = '^', ['_'] = '_', ['`'] = '`',   ['|'] = '|',
    ['~'] = '~', ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4',   ['5'] = '5',
    ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['a'] = 'a', ['b'] = 'b',   ['c'] = 'c',
    ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['g'] = 'g', ['h'] = 'h', ['i'] = 'i',   ['j'] = 'j',
    ['k'] = 'k', ['l'] = 'l', ['m'] = 'm', ['n'] = 'n', ['o'] = 'o', ['p'] = 'p',   ['q'] = 'q',
    ['r'] = 'r', ['s'] = 's', ['t'] = 't', ['u'] = 'u', ['v'] = 'v', ['w'] = 'w',   ['x'] = 'x',
    ['y'] = 'y', ['z'] = 'z', ['A'] = 'a', ['B'] = 'b', ['C'] = 'c', ['D'] = 'd',   ['E'] = 'e',
    ['F'] = 'f', ['G'] = 'g', ['H'] = 'h', ['I'] = 'i', ['J'] = 'j', ['K'] = 'k',   ['L'] = 'l',
    ['M'] = 'm', ['N'] = 'n', ['O'] = 'o', ['P'] = 'p', ['Q'] = 'q', ['R'] = 'r',   ['S'] = 's',
    ['T'] = 't', ['U'] = 'u', ['V'] = 'v', ['W'] = 'w', ['X'] = 'x', ['Y'] = 'y',   ['Z'] = 'z',
};

typedef struct {
    PyObject *bytes;
    PyObject *text;
    Meaning meaning;
} Name;

typedef struct {
    Name names[NUM_KNOWN];
    unsigned char slots[NUM_SLOTS]; /* by hash, then onwards: 1 + the index of a name, or 0 */
    PyObject *methods[NUM_METHODS];
} State;

typedef struct {
    const char *name;
    Py_ssize_t name_size;
    const char *value;
    Py_ssize_t value_size;
    const Name *known; /* or NULL */
} Field;

typedef struct {
    Field fields[MAX_FIELDS];
    int num_fields;
    bool has_host;
    long long length; /* -1 if none was said */
} Head;

/* -- reading: each takes where it begins and gives where it ended, or NULL for what is unusual -- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_visible(char c) { return c > 0x20 && c < 0x7f; }

static bool is_text(char c) { return is_visible(c) || is_blank(c); }

static const char *read_literal(const char *at, const char *literal) {
    for (; *literal != '\0'; at++, literal++)
        if (*at != *literal) return NULL;
    return at;
}

static unsigned next_hash(unsigned hash, unsigned char c) { return hash * 31 + c; }

static unsigned slot_of(unsigned hash) { return (hash ^ hash >> 8) % NUM_SLOTS; }

static const Name *find_name(const State *state, const char *name, Py_ssize_t size, unsigned hash) {
    for (unsigned slot = slot_of(hash); state->slots[slot] != 0; slot = (slot + 1) % NUM_SLOTS) {
        const Name *known = &state->names[state->slots[slot] - 1];
        if (PyBytes_GET_SIZE(known->bytes) == size &&
            memcmp(PyBytes_AS_STRING(known->bytes), name, (size_t)size) == 0)
            return known;
    }
    return NULL;
}

static const char *read_name(const State *state, const char *at, Field *field) {
    char lower[MAX_NAME_BYTES];
    Py_ssize_t size = 0;
    unsigned hash = 0;
    for (unsigned char c; (c = TOKEN[(unsigned char)at[size]]) != 0; size++) {
        if (size == MAX_NAME_BYTES) return NULL;
        lower[size] = (char)c;
        hash = next_hash(hash, c);
    }
    field->name = at;
    field->name_size = size;
    field->known = find_name(state, lower, size, hash);
    return size > 0 ? read_literal(at + size, ":") : NULL;
}

/* Neither empty nor with blanks behind it, which httptools leaves in place. */
static const char *read_value(const char *at, Field *field) {
    while (is_blank(*at)) at++;
    field->value = at;
    while (is_text(*at)) at++;
    field->value_size = at - field->value;
    if (field->value_size == 0 || is_blank(at[-1])) return NULL;
    return read_literal(at, "\r\n");
}

static bool read_length(const Field *field, Head *head) {
    if (head->length >= 0 || field->value_size > MAX_LENGTH_DIGITS) return false;
    head->length = 0;
    for (Py_ssize_t i = 0; i < field->value_size; i++) {
        char digit = field->value[i];
        if (digit < '0' || digit > '9') return false;
        head->length = head->length * 10 + (digit - '0');
    }
    return true;
}

static bool says_keep_alive(const Field *field) {
    return field->value_size == 10 && PyOS_strnicmp(field->value, "keep-alive", 10) == 0;
}

static bool take_field(const Field *field, Head *head) {
    switch (field->known == NULL ? PLAIN : field->known->meaning) {
        case PLAIN: return true;
        case HOST:
            if (head->has_host) return false;
            head->has_host = true;
            return true;
        case CONTENT_LENGTH: return read_length(field, head);
        case CONNECTION: return says_keep_alive(field);
        case UNUSUAL: return false;
    }
    return false;
}

/* All fields, and the empty line behind them. */
static const char *read_fields(const State *state, const char *at, Head *head) {
    head->num_fields = 0;
    head->has_host = false;
    head->length = -1;
    while (*at != '\r') {
        if (head->num_fields == MAX_FIELDS) return NULL;
        Field *field = &head->fields[head->num_fields++];
        if ((at = read_name(state, at, field)) == NULL || (at = read_value(at, field)) == NULL ||
            !take_field(field, head))
            return NULL;
    }
    return read_literal(at, "\r\n");
}

static const char *read_method(const State *state, const char *at, PyObject **method) {
    for (int i = 0; i < NUM_METHODS; i++) {
        const char *end = read_literal(at, METHODS[i]);
        if (end != NULL && *end == ' ') {
            *method = state->methods[i];
            return end + 1;
        }
    }
    return NULL;
}

static const char *read_target(const char *at, Py_ssize_t *size) {
    const char *begin = at;
    if (*at != '/') return NULL;
    while (is_visible(*at)) at++;
    *size = at - begin;
    return read_literal(at, " HTTP/1.1\r\n");
}

/* A final status whose answer has a body. */
static const char *read_status(const char *at, long *status) {
    *status = 0;
    if ((at = read_literal(at, "HTTP/1.1 ")) == NULL || *at < '2' || *at > '5') return NULL;
    for (int i = 0; i < 3; i++, at++) {
        if (*at < '0' || *at > '9') return NULL;
        *status = *status * 10 + (*at - '0');
    }
    if (*at != ' ' || *status == 204 || *status == 304) return NULL;
    while (is_text(*at)) at++;
    return read_literal(at, "\r\n");
}

/* -- what was read, as objects ----------------------------------------------------------------- */

static void write_lower(char *to, const Field *field) {
    for (Py_ssize_t i = 0; i < field->name_size; i++)
        to[i] = (char)TOKEN[(unsigned char)field->name[i]];
}

static PyObject *name_text(const Field *field) {
    if (field->known != NULL) return Py_NewRef(field->known->text);
    PyObject *name = PyUnicode_New(field->name_size, 0x7f);
    if (name != NULL) write_lower((char *)PyUnicode_1BYTE_DATA(name), field);
    return name;
}

static PyObject *name_bytes(const Field *field) {
    if (field->known != NULL) return Py_NewRef(field->known->bytes);
    PyObject *name = PyBytes_FromStringAndSize(NULL, field->name_size);
    if (name != NULL) write_lower(PyBytes_AS_STRING(name), field);
    return name;
}

static PyObject *value_text(const Field *field) {
    PyObject *value = PyUnicode_New(field->value_size, 0x7f);
    if (value != NULL) memcpy(PyUnicode_1BYTE_DATA(value), field->value, (size_t)field->value_size);
    return value;
}

/* A tuple of `size` references that it takes over; NULL if one of them is NULL. */
static PyObject *tuple_of(Py_ssize_t size, PyObject *const items[]) {
    PyObject *tuple = PyTuple_New(size);
    bool complete = tuple != NULL;
    for (Py_ssize_t i = 0; i < size; i++) complete = complete && items[i] != NULL;
    for (Py_ssize_t i = 0; i < size; i++) {
        if (complete)
            PyTuple_SET_ITEM(tuple, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (!complete) Py_CLEAR(tuple);
    return tuple;
}

/* 1 if it is in `named` now, 0 if something of its name was there before, -1 with an exception. */
static int add_field(PyObject *named, const Field *field) {
    PyObject *name = name_text(field);
    PyObject *value = value_text(field);
    int added = -1;
    if (name != NULL && value != NULL) {
        PyObject *there = PyDict_SetDefault(named, name, value);
        added = there == NULL ? -1 : there == value;
    }
    Py_XDECREF(name);
    Py_XDECREF(value);
    return added;
}

/* A dict of text; None if a name is repeated. */
static PyObject *named_fields(const Head *head) {
    PyObject *named = PyDict_New();
    for (int i = 0; named != NULL && i < head->num_fields; i++) {
        int added = add_field(named, &head->fields[i]);
        if (added != 1) {
            Py_DECREF(named);
            named = added == 0 ? Py_NewRef(Py_None) : NULL;
            break;
        }
    }
    return named;
}

/* A list of pairs of bytes. */
static PyObject *listed_fields(const Head *head) {
    PyObject *listed = PyList_New(head->num_fields);
    for (int i = 0; listed != NULL && i < head->num_fields; i++) {
        const Field *field = &head->fields[i];
        PyObject *pair = tuple_of(2, (PyObject *[]){
                                         name_bytes(field),
                                         PyBytes_FromStringAndSize(field->value, field->value_size),
                                     });
        if (pair == NULL)
            Py_CLEAR(listed);
        else
            PyList_SET_ITEM(listed, i, pair);
    }
    return listed;
}

/* -- the functions ------------------------------------------------------------------------------ */

static PyObject *read_request(PyObject *module, PyObject *data) {
    const State *state = PyModule_GetState(module);
    Head head;
    PyObject *method;
    Py_ssize_t target_size;
    if (!PyBytes_CheckExact(data)) Py_RETURN_NONE;
    const char *begin = PyBytes_AS_STRING(data), *target, *fields, *end;
    if ((target = read_method(state, begin, &method)) == NULL ||
        (fields = read_target(target, &target_size)) == NULL ||
        (end = read_fields(state, fields, &head)) == NULL || end - begin > MAX_HEAD_BYTES ||
        !head.has_host)
        Py_RETURN_NONE;
    PyObject *named = named_fields(&head);
    if (named == NULL || named == Py_None) return named;
    return tuple_of(5, (PyObject *[]){
                           Py_NewRef(method),
                           PyBytes_FromStringAndSize(target, target_size),
                           named,
                           PyLong_FromSsize_t(end - begin),
                           PyLong_FromLongLong(head.length < 0 ? 0 : head.length),
                       });
}

static PyObject *read_response(PyObject *module, PyObject *data) {
    const State *state = PyModule_GetState(module);
    Head head;
    long status;
    if (!PyBytes_CheckExact(data)) Py_RETURN_NONE;
    const char *begin = PyBytes_AS_STRING(data), *fields, *body;
    if ((fields = read_status(begin, &status)) == NULL ||
        (body = read_fields(state, fields, &head)) == NULL || body - begin > MAX_HEAD_BYTES ||
        head.length != begin + PyBytes_GET_SIZE(data) - body)
        Py_RETURN_NONE;
    return tuple_of(3, (PyObject *[]){
                           PyLong_FromLong(status),
                           listed_fields(&head),
                           PyBytes_FromStringAndSize(body, (Py_ssize_t)head.length),
                       });
}

/* -- the module --------------------------------------------------------------------------------- */

static int fill_name(State *state, int index) {
    const char *name = KNOWN[index].name;
    Name *known = &state->names[index];
    known->meaning = KNOWN[index].meaning;
    known->bytes = PyBytes_FromString(name);
    known->text = PyUnicode_InternFromString(name);
    if (known->bytes == NULL || known->text == NULL) return -1;
    unsigned hash = 0;
    for (; *name != '\0'; name++) hash = next_hash(hash, (unsigned char)*name);
    unsigned slot = slot_of(hash);
    while (state->slots[slot] != 0) slot = (slot + 1) % NUM_SLOTS;
    state->slots[slot] = (unsigned char)(index + 1);
    return 0;
}

static int fill(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < NUM_KNOWN; i++)
        if (fill_name(state, i) < 0) return -1;
    for (int i = 0; i < NUM_METHODS; i++)
        if ((state->methods[i] = PyUnicode_InternFromString(METHODS[i])) == NULL) return -1;
    return 0;
}

static int clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    for (int i = 0; i < NUM_KNOWN; i++) {
        Py_CLEAR(state->names[i].bytes);
        Py_CLEAR(state->names[i].text);
    }
    for (int i = 0; i < NUM_METHODS; i++) Py_CLEAR(state->methods[i]);
    return 0;
}

static void release(void *module) { clear(module); }

static PyMethodDef methods[] = {
    {"read_request", read_request, METH_O, NULL},
    {"read_response", read_response, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "heads", NULL, sizeof(State), methods, slots, NULL, NULL, release,
};

PyMODINIT_FUNC PyInit_heads(void) { return PyModuleDef_Init(&module); }
