/* The twins of `core/judge.py` and of `core/classify.py`: the same sums in the same order. What is not
 * as usual (a weight of another shape, a size without a number, a request without text, a model that
 * is not the gateway's own) is the law's to answer, or to refuse. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>

#include "fields.h"

enum { CODE, CHAT, EDIT, ADDS, NUM_SUMS };
enum { NUM_CLASSES = 3, NUM_TERMS = 7 };
enum { MOST_SIZES = 15, MOST_MATERIALS = 15 };
enum { MOST_STEPS = 1 << 20 }; /* of a share; more are no share */

enum { FEATURES, VIEW, MADE, EVIDENCE, NUM_TYPES };

static const char *const MADE_FIELDS[] = {"workload", "label_confidence", "copy_ratio", "evidence"};
enum { NUM_MADE_FIELDS = sizeof MADE_FIELDS / sizeof *MADE_FIELDS };

#define FIELDS(X) \
    X(FEATURES, view) X(FEATURES, material) X(FEATURES, material_chars) X(FEATURES, signals) \
    X(VIEW, has_text)

#define AS_MEMBER(type, name) Py_ssize_t type##_##name;
#define LOOKED_UP(type, name) \
    if ((self->type##_##name = field_offset(self->types[type], #name)) < 0) return NULL;
#define GET(value, field) field_at(value, self->field)

/* A signal of the model and where its weights stand, in a table by the name's address: names of
 * signals are interned, and a name found here is not looked at. */
typedef struct {
    PyObject *name;
    Py_ssize_t row;
} Place;

/* What the model has for one material, by the band of its size. */
typedef struct {
    PyObject *weights, *low_powers;
    double high_means[MOST_SIZES + 1];
    double bias[MOST_SIZES + 1][NUM_SUMS];
    double (*rows)[NUM_SUMS];
} Table;

typedef struct {
    PyObject *law;
    double least_log;
    PyObject *law_of_classes, *model, *mixture, *made_fields;
    PyObject *types[NUM_TYPES], *classes[NUM_CLASSES], *numbers[NUM_CLASSES];
    double steps, share[NUM_TERMS];
    FIELDS(AS_MEMBER)
    Place *places;
    size_t last_place; /* their number, a power of 2, less 1 */
    Py_ssize_t num_sizes, num_materials;
    Py_ssize_t sizes[MOST_SIZES];
    PyObject *materials[MOST_MATERIALS], *names;
    Table tables[MOST_MATERIALS];
} State;

/* ---- the sums -------------------------------------------------------------------------------- */

/* Reads a signal's weight, or the bias; false if it is none. */
static int read_weight(PyObject *weight, double *values) {
    if (!PyTuple_CheckExact(weight) || PyTuple_GET_SIZE(weight) != NUM_SUMS + 1) return 0;
    for (int i = 0; i < NUM_SUMS; i++)
        if (!as_double(PyTuple_GET_ITEM(weight, i), &values[i])) return 0;
    return 1;
}

static void add(const double *values, double *sums) {
    for (int i = 0; i < NUM_SUMS; i++) sums[i] += values[i];
}

/* Adds the weight of a signal by its name: 1, 0 if it is the law's to do, -1 with an exception. */
static int add_named(PyObject *signal, PyObject *weights, double *sums) {
    double values[NUM_SUMS];
    PyObject *weight = PyDict_GetItemWithError(weights, signal);
    if (weight == NULL) return PyErr_Occurred() ? -1 : 1; /* too rare to have one */
    if (!read_weight(weight, values)) return 0;
    add(values, sums);
    return 1;
}

static size_t first_place(const State *self, PyObject *name) {
    return (size_t)(((uint64_t)(uintptr_t)name >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
           self->last_place;
}

/* The place of a name, or the free one where it would stand. */
static Place *place_of(const State *self, PyObject *name) {
    size_t at = first_place(self, name);
    while (self->places[at].name != NULL && self->places[at].name != name)
        at = (at + 1) & self->last_place;
    return &self->places[at];
}

/* As `add_named`, for all signals, in the order in which the set gives them. Of a `table` the rows
 * are added; without one, the weights by name. */
static int add_signals(const State *self, PyObject *signals, PyObject *weights, const Table *table,
                       double *sums) {
    const PySetObject *set = (PySetObject *)signals;
    int done = 1;
    for (Py_ssize_t i = 0; done == 1 && i <= set->mask; i++) {
        PyObject *signal = set->table[i].key;
        if (signal == NULL || set->table[i].hash == -1) continue; /* free, or given up */
        const Place *place = table == NULL ? NULL : place_of(self, signal);
        if (place != NULL && place->name != NULL)
            add(table->rows[place->row], sums);
        else
            done = add_named(signal, weights, sums);
    }
    return done;
}

static void log_softmax(const double *sums, double *logs) {
    double highest = sums[CODE];
    if (sums[CHAT] > highest) highest = sums[CHAT];
    if (sums[EDIT] > highest) highest = sums[EDIT];
    double total = highest + log(exp(sums[CODE] - highest) + exp(sums[CHAT] - highest) +
                                 exp(sums[EDIT] - highest));
    for (int i = 0; i < NUM_CLASSES; i++) logs[i] = sums[i] - total;
}

static double at_least(double value, double least) { return least > value ? least : value; }

/* The log-odds of a high copy ratio. */
static double odds_of(const double *share, const double *logs, double band, double least_log) {
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
    double odds = 0.0;
    for (int i = 0; i < NUM_TERMS; i++) odds += share[i] * terms[i];
    return odds;
}

/* False if there are other weights than terms. */
static int read_share(PyObject *share, double *values) {
    if (!PyTuple_CheckExact(share) || PyTuple_GET_SIZE(share) != NUM_TERMS) return 0;
    for (int i = 0; i < NUM_TERMS; i++)
        if (!as_double(PyTuple_GET_ITEM(share, i), &values[i])) return 0;
    return 1;
}

static PyObject *judge(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    double sums[NUM_SUMS], logs[NUM_CLASSES], share[NUM_TERMS], band;
    if (self->law == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    int done = num_args == 5 && PyFrozenSet_CheckExact(args[0]) && PyDict_CheckExact(args[1]) &&
               read_weight(args[2], sums) && as_double(args[3], &band) &&
               read_share(args[4], share);
    if (done) done = add_signals(self, args[0], args[1], NULL, sums);
    if (done < 0) return NULL;
    if (!done) return PyObject_Vectorcall(self->law, args, (size_t)num_args, NULL);
    log_softmax(sums, logs);
    double odds = odds_of(share, logs, band, self->least_log);
    return Py_BuildValue("(ddd)dd", logs[CODE], logs[CHAT], logs[EDIT], sums[ADDS], odds);
}

/* ---- the classes ----------------------------------------------------------------------------- */

static int is_a(const State *self, PyObject *value, int type) {
    return value != NULL && (PyObject *)Py_TYPE(value) == self->types[type];
}

/* What the model has for a material, and the band of its size; NULL if that is the law's to find. */
static const Table *table_of(const State *self, PyObject *features, int *band) {
    PyObject *material = GET(features, FEATURES_material);
    PyObject *num_chars = GET(features, FEATURES_material_chars);
    if (num_chars == NULL || !PyLong_CheckExact(num_chars)) return NULL;
    int overflow;
    long number = PyLong_AsLongAndOverflow(num_chars, &overflow);
    if (overflow) return NULL;
    *band = 0;
    while (*band < self->num_sizes && self->sizes[*band] < number) ++*band;
    for (Py_ssize_t i = 0; i < self->num_materials; i++)
        if (self->materials[i] == material) return &self->tables[i];
    return NULL;
}

/* As Python's `round`, of halves to the even one; NULL without an exception for what is no share. */
static PyObject *rounded(double steps) {
    return fabs(steps) < MOST_STEPS ? PyLong_FromLong((long)rint(steps)) : NULL;
}

/* The copy ratio, owned; NULL, mostly without an exception, if it is the law's to find. */
static PyObject *copy_ratio(const State *self, const Table *table, int band, double odds,
                            double adds) {
    double unlikely = exp(-odds);
    if (!isfinite(unlikely)) return NULL;
    PyObject *asked[] = {
        rounded(self->steps / (1.0 + unlikely)),
        PyTuple_GET_ITEM(table->low_powers, band),
        rounded(self->steps * (table->high_means[band] + adds)),
    };
    PyObject *found = NULL;
    if (asked[0] != NULL && asked[2] != NULL)
        found = PyObject_Vectorcall(self->mixture, asked, 3, NULL);
    Py_XDECREF(asked[0]);
    Py_XDECREF(asked[2]);
    return found;
}

static PyObject *classification(const State *self, PyObject *signals, const Table *table, int best,
                                double highest, PyObject *ratio) {
    double confidence = exp(highest);
    PyObject *said[] = {signals, table->weights, self->numbers[best]};
    PyObject *fields[NUM_MADE_FIELDS] = {
        self->classes[best],
        PyFloat_FromDouble(confidence > 1.0 ? 1.0 : confidence),
        ratio,
        PyObject_Vectorcall(self->types[EVIDENCE], said, 3, NULL),
    };
    PyObject *made = NULL;
    if (fields[1] != NULL && fields[3] != NULL)
        made = PyObject_Vectorcall(self->types[MADE], fields, 0, self->made_fields);
    Py_XDECREF(fields[1]);
    Py_XDECREF(fields[3]);
    return made;
}

/* The classification, owned; NULL, with an exception or without one, if it is the law's to find. */
static PyObject *classified(const State *self, PyObject *features) {
    if (!is_a(self, features, FEATURES) || !is_a(self, GET(features, FEATURES_view), VIEW) ||
        GET(GET(features, FEATURES_view), VIEW_has_text) != Py_True)
        return NULL;
    PyObject *signals = GET(features, FEATURES_signals);
    int band;
    const Table *table = table_of(self, features, &band);
    if (table == NULL || signals == NULL || !PyFrozenSet_CheckExact(signals)) return NULL;
    double sums[NUM_SUMS], logs[NUM_CLASSES];
    memcpy(sums, table->bias[band], sizeof sums);
    if (add_signals(self, signals, table->weights, table, sums) != 1) return NULL;
    log_softmax(sums, logs);
    int best = CODE;
    if (logs[CHAT] > logs[best]) best = CHAT;
    if (logs[EDIT] > logs[best]) best = EDIT;
    double odds = odds_of(self->share, logs, band, self->least_log);
    PyObject *ratio = copy_ratio(self, table, band, odds, sums[ADDS]);
    if (ratio == NULL) return NULL;
    PyObject *made = classification(self, signals, table, best, logs[best], ratio);
    Py_DECREF(ratio);
    return made;
}

static PyObject *classify(PyObject *module, PyObject *const *args, Py_ssize_t num_args,
                          PyObject *names) {
    const State *self = PyModule_GetState(module);
    if (self->law_of_classes == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure_classes comes first");
        return NULL;
    }
    int is_own = names == NULL && (num_args == 1 || (num_args == 2 && args[1] == self->model));
    PyObject *found = is_own ? classified(self, args[0]) : NULL;
    if (found != NULL || PyErr_Occurred()) return found;
    return PyObject_Vectorcall(self->law_of_classes, args, (size_t)num_args, names);
}

/* ---- the module ------------------------------------------------------------------------------ */

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law;
    if (!PyArg_ParseTuple(args, "Od", &law, &self->least_log)) return NULL;
    Py_XSETREF(self->law, PyObject_GetAttrString(law, "judge"));
    if (self->law == NULL) return NULL;
    Py_RETURN_NONE;
}

/* Every object that the state holds; `f` is told of each. */
static int each_object(State *self, int (*f)(PyObject **, void *), void *arg) {
    PyObject **objects[] = {
        &self->law,     &self->law_of_classes, &self->model,
        &self->mixture, &self->made_fields,    &self->names,
    };
    int told = 0;
    for (size_t i = 0; told == 0 && i < sizeof objects / sizeof *objects; i++)
        told = f(objects[i], arg);
    for (int i = 0; told == 0 && i < NUM_TYPES; i++) told = f(&self->types[i], arg);
    for (int i = 0; told == 0 && i < NUM_CLASSES; i++) {
        told = f(&self->classes[i], arg);
        if (told == 0) told = f(&self->numbers[i], arg);
    }
    for (int i = 0; told == 0 && i < MOST_MATERIALS; i++) {
        told = f(&self->materials[i], arg);
        if (told == 0) told = f(&self->tables[i].weights, arg);
        if (told == 0) told = f(&self->tables[i].low_powers, arg);
    }
    return told;
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    return each_object(PyModule_GetState(module), visited, &(Visitor){visit, arg});
}

static int clear(PyObject *module) {
    State *self = PyModule_GetState(module);
    each_object(self, cleared, NULL);
    PyMem_Free(self->places);
    self->places = NULL;
    self->num_materials = 0;
    for (int i = 0; i < MOST_MATERIALS; i++) {
        PyMem_Free(self->tables[i].rows);
        self->tables[i].rows = NULL;
    }
    return 0;
}

static void finish(void *module) { clear(module); }

static PyObject *refuse(const char *what) {
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "the twin was not written for such %s", what);
    return NULL;
}

/* A member of a mapping as a tuple, owned. */
static PyObject *tuple_in(PyObject *mapping, PyObject *key) {
    PyObject *found = PyObject_GetItem(mapping, key);
    PyObject *tuple = found == NULL ? NULL : PySequence_Tuple(found);
    Py_XDECREF(found);
    return tuple;
}

static PyObject *take_sizes(State *self, PyObject *sizes) {
    self->num_sizes = PyTuple_GET_SIZE(sizes);
    if (self->num_sizes > MOST_SIZES) return refuse("sizes");
    for (Py_ssize_t i = 0; i < self->num_sizes; i++)
        self->sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i));
    return PyErr_Occurred() ? NULL : sizes;
}

/* The signals' names, each with a row of its own: those that any material has weights for. */
static PyObject *take_names(State *self, PyObject *weights) {
    if ((self->names = PySequence_Tuple(weights)) == NULL) return NULL;
    size_t num_names = (size_t)PyTuple_GET_SIZE(self->names), num_places = 64;
    while (num_places < 4 * num_names) num_places *= 2;
    self->last_place = num_places - 1;
    self->places = PyMem_Calloc(num_places, sizeof *self->places);
    if (self->places == NULL) return PyErr_NoMemory();
    for (size_t i = 0; i < num_names; i++) {
        PyObject *name = PyTuple_GET_ITEM(self->names, i);
        *place_of(self, name) = (Place){name, (Py_ssize_t)i};
    }
    return self->names;
}

static PyObject *take_rows(State *self, Table *table) {
    Py_ssize_t num_names = PyTuple_GET_SIZE(self->names);
    if (PyDict_GET_SIZE(table->weights) != num_names) return refuse("weights");
    table->rows = PyMem_Calloc((size_t)num_names + 1, sizeof *table->rows);
    if (table->rows == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < num_names; i++) {
        PyObject *weight =
            PyDict_GetItemWithError(table->weights, PyTuple_GET_ITEM(self->names, i));
        if (weight == NULL || !read_weight(weight, table->rows[i])) return refuse("weights");
    }
    return table->weights;
}

/* The table of a material, of the model's four mappings by material. */
static PyObject *take_table(State *self, PyObject *material, PyObject *const *mappings) {
    Table *table = &self->tables[self->num_materials];
    Py_ssize_t num_bands = self->num_sizes + 1;
    table->weights = PyObject_GetItem(mappings[0], material);
    if (table->weights == NULL || !PyDict_CheckExact(table->weights)) return refuse("weights");
    if (self->names == NULL && !take_names(self, table->weights)) return NULL;
    if (!take_rows(self, table)) return NULL;
    table->low_powers = tuple_in(mappings[2], material);
    PyObject *bias = tuple_in(mappings[1], material), *means = tuple_in(mappings[3], material);
    int are_usual = table->low_powers != NULL && bias != NULL && means != NULL &&
                    PyTuple_GET_SIZE(table->low_powers) == num_bands &&
                    PyTuple_GET_SIZE(bias) == num_bands && PyTuple_GET_SIZE(means) == num_bands;
    for (Py_ssize_t i = 0; are_usual && i < num_bands; i++)
        are_usual = read_weight(PyTuple_GET_ITEM(bias, i), table->bias[i]) &&
                    as_double(PyTuple_GET_ITEM(means, i), &table->high_means[i]);
    Py_XDECREF(bias);
    Py_XDECREF(means);
    if (!are_usual) return refuse("bands");
    self->materials[self->num_materials++] = Py_NewRef(material);
    return material;
}

static PyObject *take_model(State *self, PyObject *model, PyObject *materials) {
    static const char *const parts[] = {"weights", "bias", "low_powers", "high_means"};
    PyObject *copying = PyObject_GetAttrString(model, "copying"), *mappings[4] = {NULL};
    PyObject *done = model;
    if (copying == NULL) return NULL;
    PyObject *share = PyObject_GetAttrString(copying, "share");
    if (share == NULL || !read_share(share, self->share)) done = refuse("a share");
    for (int i = 0; done != NULL && i < 4; i++)
        if (!take(&mappings[i], i < 2 ? model : copying, parts[i])) done = NULL;
    if (done != NULL && PyTuple_GET_SIZE(materials) > MOST_MATERIALS) done = refuse("materials");
    for (Py_ssize_t i = 0; done != NULL && i < PyTuple_GET_SIZE(materials); i++)
        done = take_table(self, PyTuple_GET_ITEM(materials, i), mappings);
    for (int i = 0; i < 4; i++) Py_XDECREF(mappings[i]);
    Py_XDECREF(share);
    Py_DECREF(copying);
    return done;
}

static PyObject *configure_classes(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *law, *model, *materials, *sizes, *classes, *mixture, *types[NUM_TYPES];
    double steps;
    if (!PyArg_ParseTuple(args, "OOO!O!O!OdOOOO", &law, &model, &PyTuple_Type, &materials,
                          &PyTuple_Type, &sizes, &PyTuple_Type, &classes, &mixture, &steps,
                          &types[FEATURES], &types[VIEW], &types[MADE], &types[EVIDENCE]))
        return NULL;
    PyObject *law_of_sums = Py_XNewRef(self->law);
    clear(module);
    self->law = law_of_sums;
    if (PyTuple_GET_SIZE(classes) != NUM_CLASSES) return refuse("classes");
    for (int i = 0; i < NUM_TYPES; i++) self->types[i] = Py_NewRef(types[i]);
    for (int i = 0; i < NUM_CLASSES; i++) {
        self->classes[i] = Py_NewRef(PyTuple_GET_ITEM(classes, i));
        if ((self->numbers[i] = PyLong_FromLong(i)) == NULL) return NULL;
    }
    FIELDS(LOOKED_UP)
    self->steps = steps;
    if (!take_sizes(self, sizes) || !take_model(self, model, materials)) return NULL;
    self->made_fields = names_of(MADE_FIELDS, NUM_MADE_FIELDS);
    if (PyErr_Occurred()) return NULL;
    self->model = Py_NewRef(model);
    self->mixture = Py_NewRef(mixture);
    self->law_of_classes = Py_NewRef(law); /* the last, so that it tells whether all is there */
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS, "Takes the law, and the least log that counts."},
    {"judge", (PyCFunction)(void (*)(void))judge, METH_FASTCALL, "As `paceline.core.judge.judge`."},
    {"configure_classes", configure_classes, METH_VARARGS,
     "Takes the law of `classify`, its model and what else it goes by."},
    {"classify", (PyCFunction)(void (*)(void))classify, METH_FASTCALL | METH_KEYWORDS,
     "As `paceline.core.classify.classify`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "judgement",
    "The twins of what judges requests.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    finish,
};

PyMODINIT_FUNC PyInit_judgement(void) { return PyModuleDef_Init(&MODULE); }
