/* The twin of `core/rules.py`: its `outcome_of`, for rules that name, prefer or forbid pools.
 *
 * Of a request no more is read than its rules ask about. Whatever is not as usual (shares drawn by
 * weight, a field that is not known here, a value of another type, headers that are no dict) is the
 * law's to answer, or to refuse, and then it answers for all rules. */
#include "fields.h"

#include <stdbool.h>
#include <string.h>

/* Those of `core/types.py`, then those of the law. */
enum { FEATURES, VIEW, CLASSIFICATION, COPY_RATIO, CALLER, VERDICT, NUM_TYPES };
enum { RULE = NUM_TYPES, CONDITION, ACTION, COMPARISON, OUTCOME, MISMATCH, NUM_CLASSES };

static const char *const CLASSES[NUM_CLASSES] = {
    "RequestFeatures", "RequestView", "Classification", "CopyRatio",
    "Caller",          "RuleVerdict", "Rule",           "Condition",
    "Action",          "Comparison",  "RuleOutcome",    "_Mismatch",
};

#define FIELDS(X) \
    X(FEATURES, view) X(FEATURES, prompt_chars) \
    X(VIEW, endpoint) X(VIEW, model) X(VIEW, stream) X(VIEW, num_tools) X(VIEW, response_format) \
    X(VIEW, max_tokens) \
    X(CLASSIFICATION, workload) X(CLASSIFICATION, label_confidence) \
    X(CLASSIFICATION, copy_ratio) \
    X(COPY_RATIO, expected) \
    X(CALLER, key_name) X(CALLER, headers) X(CALLER, priority) \
    X(RULE, name) X(RULE, when) X(RULE, then) \
    X(CONDITION, field) X(CONDITION, any_of) X(CONDITION, header) X(CONDITION, negate) \
    X(ACTION, pool) X(ACTION, prefer) X(ACTION, forbid) \
    X(COMPARISON, sign) X(COMPARISON, value)

#define AS_MEMBER(class, name) Py_ssize_t class##_##name;
#define LOOKED_UP(class, name) \
    if ((self->class##_##name = field_offset(self->classes[class], #name)) < 0) return NULL;
#define READ(value, class, name) read_field(self, value, class, self->class##_##name)

/* What conditions may name. */
enum {
    MODEL,
    ENDPOINT,
    WORKLOAD,
    EXPECTED,
    CONFIDENCE,
    HEADER,
    KEY,
    TOOLS,
    FORMAT,
    PROMPT_CHARS,
    MAX_TOKENS,
    STREAM,
    PRIORITY,
    NUM_NAMES
};
static const char *const NAMES[NUM_NAMES] = {
    "model", "endpoint",        "workload",     "copy_ratio", "label_confidence", "header",   "key",
    "tools", "response_format", "prompt_chars", "max_tokens", "stream",           "priority",
};

static const char *const OUTCOME_FIELDS[] = {"rule", "pool", "preferred", "forbidden", "verdicts"};
static const char *const MISMATCH_FIELDS[] = {"rule", "obstacle", "value"};
enum { NUM_OUTCOME_FIELDS = 5, NUM_MISMATCH_FIELDS = 3, NUM_VERDICT_FIELDS = 2 };

enum { FEW_RULES = 32 };                  /* whose verdicts need no memory of their own */
static const long long EXACT = 1LL << 53; /* up to here a double is any integer */

typedef struct {
    PyObject *classes[NUM_CLASSES], *names[NUM_NAMES];
    PyObject *law, *obstacle; /* functions */
    PyObject *outcome_fields, *mismatch_fields, *verdict_fields, *none_forbidden;
    bool is_presence[NUM_NAMES]; /* whether true and false ask if there is one at all */
    FIELDS(AS_MEMBER)
} State;

typedef struct {
    PyObject *features, *classification, *caller, *allowed; /* borrowed */
} Request;

/* What functions that test say, beside yes and no: the law's to answer, or an exception. */
enum { LAW = -1 };

/* ---- reading --------------------------------------------------------------------------------- */

/* A field of a value, borrowed; NULL if that is not of the class, or not set. */
static PyObject *read_field(const State *self, PyObject *value, int class, Py_ssize_t offset) {
    if (value == NULL || (PyObject *)Py_TYPE(value) != self->classes[class]) return NULL;
    return field_at(value, offset);
}

/* A string, or one of an enumeration of strings: either equals another by its text alone. */
static bool is_text(PyObject *value) {
    return PyUnicode_CheckExact(value) ||
           (PyUnicode_Check(value) &&
            Py_TYPE(value)->tp_richcompare == PyUnicode_Type.tp_richcompare);
}

static bool is_same_text(PyObject *one, PyObject *other) {
    if (one == other) return true;
    if (PyUnicode_GET_LENGTH(one) != PyUnicode_GET_LENGTH(other)) return false;
    int kind = PyUnicode_KIND(one);
    return kind == (int)PyUnicode_KIND(other) &&
           memcmp(PyUnicode_DATA(one), PyUnicode_DATA(other),
                  (size_t)(PyUnicode_GET_LENGTH(one) * kind)) == 0;
}

/* A number that a double holds as it is, so that comparing doubles compares as Python does. */
static bool as_number(PyObject *value, double *found) {
    if (PyFloat_CheckExact(value)) {
        *found = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (!PyLong_CheckExact(value) && !PyBool_Check(value)) return false;
    int is_beyond;
    long long number = PyLong_AsLongLongAndOverflow(value, &is_beyond);
    if (is_beyond || number > EXACT || number < -EXACT) return false;
    *found = (double)number;
    return true;
}

/* Which of `NAMES` a condition's field is; NUM_NAMES if none. */
static int name_of(const State *self, PyObject *field) {
    for (int i = 0; i < NUM_NAMES; i++)
        if (field == self->names[i]) return i;
    if (field == NULL || !PyUnicode_CheckExact(field)) return NUM_NAMES;
    for (int i = 0; i < NUM_NAMES; i++)
        if (is_same_text(field, self->names[i])) return i;
    return NUM_NAMES;
}

/* `value` where the workload is believed in, else None. */
static PyObject *if_believed(const State *self, const Request *at, PyObject *value) {
    PyObject *confidence = READ(at->classification, CLASSIFICATION, label_confidence);
    double number;
    if (confidence == NULL || !as_number(confidence, &number)) return NULL;
    return number > 0.0 ? value : Py_None;
}

static PyObject *has_tools(PyObject *num_tools) {
    double number;
    if (num_tools == NULL || !as_number(num_tools, &number)) return NULL;
    return number > 0.0 ? Py_True : Py_False;
}

static PyObject *of_view(const State *self, const Request *at, Py_ssize_t offset) {
    return read_field(self, READ(at->features, FEATURES, view), VIEW, offset);
}

static PyObject *header_of(const State *self, const Request *at, PyObject *name) {
    PyObject *headers = READ(at->caller, CALLER, headers);
    if (headers == NULL || !PyDict_CheckExact(headers) || !PyUnicode_CheckExact(name)) return NULL;
    PyObject *value = PyDict_GetItemWithError(headers, name);
    return value != NULL || PyErr_Occurred() ? value : Py_None;
}

/* What the request has where a condition asks, borrowed; NULL where only the law may say. */
static PyObject *value_of(const State *self, const Request *at, int name, PyObject *header) {
    if ((name == HEADER) != (header != Py_None)) return NULL;
    switch (name) {
        case MODEL: return of_view(self, at, self->VIEW_model);
        case ENDPOINT: return of_view(self, at, self->VIEW_endpoint);
        case WORKLOAD:
            return if_believed(self, at, READ(at->classification, CLASSIFICATION, workload));
        case EXPECTED: {
            PyObject *ratio = READ(at->classification, CLASSIFICATION, copy_ratio);
            return if_believed(self, at, READ(ratio, COPY_RATIO, expected));
        }
        case CONFIDENCE: return READ(at->classification, CLASSIFICATION, label_confidence);
        case HEADER: return header_of(self, at, header);
        case KEY: return READ(at->caller, CALLER, key_name);
        case TOOLS: return has_tools(of_view(self, at, self->VIEW_num_tools));
        case FORMAT: return of_view(self, at, self->VIEW_response_format);
        case PROMPT_CHARS: return READ(at->features, FEATURES, prompt_chars);
        case MAX_TOKENS: return of_view(self, at, self->VIEW_max_tokens);
        case STREAM: return of_view(self, at, self->VIEW_stream);
        case PRIORITY: return READ(at->caller, CALLER, priority);
        default: return NULL;
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Whether a comparison holds for a number. */
static int compares(const State *self, PyObject *comparison, PyObject *value) {
    PyObject *sign = field_at(comparison, self->COMPARISON_sign);
    PyObject *wanted = field_at(comparison, self->COMPARISON_value);
    double number, bound;
    if (sign == NULL || !PyUnicode_CheckExact(sign) || !PyUnicode_IS_ASCII(sign) ||
        wanted == NULL || !as_number(value, &number) || !as_number(wanted, &bound))
        return LAW;
    const char *chars = PyUnicode_DATA(sign); /* ended by a 0, as all are */
    if (chars[0] == '\0' || (chars[1] != '\0' && (chars[1] != '=' || chars[2] != '\0'))) return LAW;
    bool or_equal = chars[1] == '=';
    switch (chars[0]) {
        case '>': return or_equal ? number >= bound : number > bound;
        case '<': return or_equal ? number <= bound : number < bound;
        case '=': return or_equal ? number == bound : LAW;
        case '!': return or_equal ? number != bound : LAW;
        default: return LAW;
    }
}

/* Whether a value is the one that is wanted. Where they are asked about by presence, true and false
 * mean that there is one at all, or none. */
static int meets(const State *self, PyObject *wanted, PyObject *value, bool yes_by_presence,
                 bool no_by_presence) {
    if (wanted == Py_True && yes_by_presence) return value != Py_None;
    if (wanted == Py_False && no_by_presence) return value == Py_None;
    bool is_comparison = (PyObject *)Py_TYPE(wanted) == self->classes[COMPARISON];
    double number, other;
    if (is_text(wanted)) {
        if (is_text(value)) return is_same_text(wanted, value);
        return value == Py_None || as_number(value, &other) ? 0 : LAW;
    }
    if (!is_comparison && !as_number(wanted, &number)) return LAW;
    if (value == Py_None) return 0;
    if (is_comparison) return compares(self, wanted, value);
    if (is_text(value)) return 0;
    return as_number(value, &other) ? number == other : LAW;
}

/* Whether a condition holds; `*value` becomes what the request has there, borrowed. */
static int holds(const State *self, const Request *at, PyObject *condition, PyObject **value) {
    PyObject *any_of = READ(condition, CONDITION, any_of);
    PyObject *header = READ(condition, CONDITION, header);
    PyObject *negate = READ(condition, CONDITION, negate);
    if (any_of == NULL || !PyTuple_CheckExact(any_of) || header == NULL || negate == NULL ||
        !PyBool_Check(negate))
        return LAW;
    int name = name_of(self, READ(condition, CONDITION, field));
    *value = value_of(self, at, name, header);
    if (*value == NULL) return LAW;
    bool no_by_presence = self->is_presence[name];
    bool yes_by_presence = no_by_presence || name == HEADER;
    int is_met = 0;
    for (Py_ssize_t i = 0; is_met == 0 && i < PyTuple_GET_SIZE(any_of); i++)
        is_met = meets(self, PyTuple_GET_ITEM(any_of, i), *value, yes_by_presence, no_by_presence);
    return is_met == LAW ? LAW : is_met != (negate == Py_True);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool is_named(PyObject *pool) {
    return pool != NULL && PyUnicode_CheckExact(pool) && PyUnicode_GET_LENGTH(pool) > 0;
}

/* Whether a rule that matches can be carried out. Of its members only one is set. `*forbidden`
 * becomes the pools that it forbids, owned, if it forbids any. */
static int is_possible(const State *self, const Request *at, PyObject *then, PyObject **forbidden) {
    PyObject *pool = READ(then, ACTION, pool), *prefer = READ(then, ACTION, prefer);
    if (is_named(pool)) return PySet_Contains(at->allowed, pool);
    if (is_named(prefer)) return PySet_Contains(at->allowed, prefer);
    PyObject *forbid = READ(then, ACTION, forbid);
    if (pool == NULL || prefer == NULL || forbid == NULL || !PyTuple_CheckExact(forbid) ||
        PyTuple_GET_SIZE(forbid) == 0)
        return LAW;
    *forbidden = PyFrozenSet_New(forbid);
    if (*forbidden == NULL) return LAW;
    PyObject *all = PyObject_RichCompare(at->allowed, *forbidden, Py_LE);
    if (all == NULL) return LAW;
    int is_all = all == Py_True;
    Py_DECREF(all);
    return !is_all;
}

static PyObject *mismatch(const State *self, PyObject *rule, PyObject *condition, PyObject *value) {
    PyObject *fields[NUM_MISMATCH_FIELDS] = {READ(rule, RULE, name), condition, value};
    if (fields[0] == NULL) return NULL;
    Py_INCREF(value); /* a header's is the dict's alone */
    PyObject *made = PyObject_Vectorcall(self->classes[MISMATCH], fields, 0, self->mismatch_fields);
    Py_DECREF(value);
    return made;
}

static PyObject *verdict(const State *self, PyObject *rule, PyObject *obstacle) {
    PyObject *fields[NUM_VERDICT_FIELDS] = {READ(rule, RULE, name), obstacle};
    if (fields[0] == NULL) return NULL;
    return PyObject_Vectorcall(self->classes[VERDICT], fields, 0, self->verdict_fields);
}

/* The verdict on a rule, owned; NULL where only the law may say, or with an exception. `*has_won`
 * says whether it is the one. */
static PyObject *judge_rule(const State *self, const Request *at, PyObject *rule, bool *has_won,
                            PyObject **forbidden) {
    PyObject *when = READ(rule, RULE, when), *then = READ(rule, RULE, then);
    if (when == NULL || !PyTuple_CheckExact(when)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(when); i++) {
        PyObject *condition = PyTuple_GET_ITEM(when, i), *value;
        int does = holds(self, at, condition, &value);
        if (does == LAW) return NULL;
        if (!does) return mismatch(self, rule, condition, value);
    }
    int done = is_possible(self, at, then, forbidden);
    if (done == LAW) return NULL;
    if (done) {
        *has_won = true;
        return verdict(self, rule, Py_None);
    }
    PyObject *asked[] = {then, at->allowed};
    PyObject *obstacle = PyObject_Vectorcall(self->obstacle, asked, 2, NULL);
    if (obstacle == NULL) return NULL;
    PyObject *made = verdict(self, rule, obstacle);
    Py_DECREF(obstacle);
    return made;
}

/* What the winner says, or that there is none; takes the verdicts over. */
static PyObject *outcome(const State *self, PyObject *winner, PyObject *forbidden,
                         PyObject **verdicts, Py_ssize_t num_verdicts) {
    PyObject *all = PyTuple_New(num_verdicts), *made = NULL;
    for (Py_ssize_t i = 0; i < num_verdicts; i++) {
        if (all != NULL)
            PyTuple_SET_ITEM(all, i, verdicts[i]);
        else
            Py_DECREF(verdicts[i]);
    }
    if (all == NULL) return NULL;
    PyObject *then = winner == NULL ? NULL : READ(winner, RULE, then);
    PyObject *fields[NUM_OUTCOME_FIELDS] = {
        winner == NULL ? Py_None : READ(winner, RULE, name),
        winner == NULL ? Py_None : READ(then, ACTION, pool),
        winner == NULL ? Py_None : READ(then, ACTION, prefer),
        forbidden == NULL ? self->none_forbidden : forbidden,
        all,
    };
    bool complete = true;
    for (int i = 0; i < NUM_OUTCOME_FIELDS; i++) complete = complete && fields[i] != NULL;
    if (complete)
        made = PyObject_Vectorcall(self->classes[OUTCOME], fields, 0, self->outcome_fields);
    Py_DECREF(all);
    return made;
}

/* As the law; NULL without an exception where only that may say. */
static PyObject *first_of(const State *self, PyObject *rules, const Request *at) {
    PyObject *few[FEW_RULES], **verdicts = few, *winner = NULL, *forbidden = NULL, *made = NULL;
    Py_ssize_t num_rules = PyTuple_GET_SIZE(rules), num_verdicts = 0;
    bool is_usual = true;
    if (num_rules > FEW_RULES) verdicts = PyMem_New(PyObject *, num_rules);
    if (verdicts == NULL) return PyErr_NoMemory();
    while (is_usual && winner == NULL && num_verdicts < num_rules) {
        PyObject *rule = PyTuple_GET_ITEM(rules, num_verdicts);
        bool has_won = false;
        PyObject *said = judge_rule(self, at, rule, &has_won, &forbidden);
        is_usual = said != NULL;
        if (is_usual) verdicts[num_verdicts++] = said;
        if (has_won)
            winner = rule;
        else
            Py_CLEAR(forbidden);
    }
    if (is_usual) {
        made = outcome(self, winner, forbidden, verdicts, num_verdicts);
    } else {
        while (num_verdicts > 0) Py_DECREF(verdicts[--num_verdicts]);
    }
    Py_XDECREF(forbidden);
    if (verdicts != few) PyMem_Free(verdicts);
    return made;
}

static PyObject *outcome_of(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    if (self->law == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    if (num_args == 5 && PyFrozenSet_CheckExact(args[4])) {
        PyObject *rules = NULL, *made = NULL;
        if (PyTuple_CheckExact(args[0]))
            rules = Py_NewRef(args[0]);
        else if (PyList_CheckExact(args[0]))
            rules = PyList_AsTuple(args[0]);
        if (rules != NULL)
            made = first_of(self, rules, &(Request){args[1], args[2], args[3], args[4]});
        Py_XDECREF(rules);
        if (made != NULL || PyErr_Occurred()) return made;
    }
    return PyObject_Vectorcall(self->law, args, (size_t)num_args, NULL);
}

/* ---- the module ------------------------------------------------------------------------------ */

/* Every object that the state holds; `f` is told of each. */
static int each_object(State *self, int (*f)(PyObject **, void *), void *arg) {
    PyObject **objects[] = {
        &self->law,
        &self->obstacle,
        &self->outcome_fields,
        &self->mismatch_fields,
        &self->verdict_fields,
        &self->none_forbidden,
    };
    int told = 0;
    for (size_t i = 0; told == 0 && i < sizeof objects / sizeof *objects; i++)
        told = f(objects[i], arg);
    for (int i = 0; told == 0 && i < NUM_CLASSES; i++) told = f(&self->classes[i], arg);
    for (int i = 0; told == 0 && i < NUM_NAMES; i++) told = f(&self->names[i], arg);
    return told;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    return each_object(PyModule_GetState(module), visited, &(Visitor){visit, arg});
}

static int clear(PyObject *module) { return each_object(PyModule_GetState(module), cleared, NULL); }

static void release(void *module) { clear(module); }

/* Which of the names are asked about by yes and no; false with an exception. */
static bool take_names(State *self, PyObject *law) {
    PyObject *presence = PyObject_GetAttrString(law, "_PRESENCE");
    bool done = presence != NULL;
    for (int i = 0; done && i < NUM_NAMES; i++) {
        self->names[i] = PyUnicode_InternFromString(NAMES[i]);
        int is_in = self->names[i] == NULL ? -1 : PySequence_Contains(presence, self->names[i]);
        self->is_presence[i] = is_in == 1;
        done = is_in >= 0;
    }
    Py_XDECREF(presence);
    return done;
}

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law, *types;
    if (!PyArg_ParseTuple(args, "OO", &law, &types)) return NULL;
    clear(module);
    for (int i = 0; i < NUM_CLASSES; i++) {
        self->classes[i] = PyObject_GetAttrString(i < NUM_TYPES ? types : law, CLASSES[i]);
        if (self->classes[i] == NULL) return NULL;
    }
    FIELDS(LOOKED_UP)
    if (!take_names(self, law) || !take(&self->obstacle, law, "_obstacle")) return NULL;
    self->outcome_fields = names_of(OUTCOME_FIELDS, NUM_OUTCOME_FIELDS);
    self->mismatch_fields = names_of(MISMATCH_FIELDS, NUM_MISMATCH_FIELDS);
    self->verdict_fields = names_of(MISMATCH_FIELDS, NUM_VERDICT_FIELDS);
    self->none_forbidden = PyFrozenSet_New(NULL);
    if (PyErr_Occurred()) return NULL;
    if (!take(&self->law, law, "outcome_of")) return NULL; /* last: only now it is configured */
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS, "Takes the law, and the module of the types."},
    {"outcome_of", (PyCFunction)(void (*)(void))outcome_of, METH_FASTCALL,
     "As `paceline.core.rules.outcome_of`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "rules",
    "The twin of `paceline.core.rules`.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    release,
};

PyMODINIT_FUNC PyInit_rules(void) { return PyModuleDef_Init(&MODULE); }
