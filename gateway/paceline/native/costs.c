/* The twin of `core/choose.py` and of `core/offers.py` below it, for workers that choose their own k.
 *
 * Each line of arithmetic is the law's, in the law's order, so that both round alike. Whatever is
 * not as usual (a worker that may be told k, a field of another type, a division by 0) is the law's
 * to answer, or to refuse. */
#include <math.h>

#include "fields.h"

enum { POOL, WORKER, LOAD, TERMS, PLACE, CHOICE, NUM_OF_TYPES };
enum { OFFER = NUM_OF_TYPES, DRAFTING, STEP, OUTLOOK, NUM_OF_OFFERS };
enum { ADAPTIVE = NUM_OF_OFFERS, NUM_CLASSES };

static const char *const CLASSES[NUM_CLASSES] = {
    "PoolSnapshot", "WorkerSnapshot", "WorkerLoad", "Terms",   "Place",    "Choice",
    "Offer",        "Drafting",       "StepTime",   "Outlook", "Adaptive",
};
enum { MOST_POOLS = 32 };

#define FIELDS(X) \
    X(OFFER, pool) X(OFFER, drafting) X(OFFER, step_times) X(OFFER, outlook) X(OFFER, eta) \
    X(OFFER, preference) \
    X(POOL, name) X(POOL, workers) X(POOL, max_num_seqs) \
    X(WORKER, url) X(WORKER, in_flight) X(WORKER, last_picked) X(WORKER, up) X(WORKER, on_trial) \
    X(WORKER, share) X(WORKER, load) X(WORKER, drafting) X(WORKER, elsewhere) \
    X(WORKER, per_request_k) \
    X(LOAD, running) X(LOAD, waiting) \
    X(DRAFTING, shares) X(DRAFTING, inverse_taus) X(DRAFTING, mean_inverses) X(DRAFTING, fill) \
    X(STEP, fixed_s) X(STEP, token_s) X(STEP, kv_token_s) X(STEP, known_to) \
    X(OUTLOOK, output_tokens) X(OUTLOOK, prompt_tokens) X(OUTLOOK, context) \
    X(ADAPTIVE, expectations) X(ADAPTIVE, place) X(ADAPTIVE, draw) X(ADAPTIVE, exploration) \
    X(ADAPTIVE, eta) X(PLACE, pool) X(PLACE, worker) X(TERMS, worker) \
    X(TERMS, pool) X(TERMS, k) X(TERMS, prefill_s) X(TERMS, preference) X(TERMS, slope_s) X(TERMS, cost_s)

#define AS_MEMBER(class, name) Py_ssize_t class##_##name;
#define LOOKED_UP(class, name) \
    if ((self->class##_##name = field_offset(self->classes[class], #name)) < 0) return NULL;
#define GET(value, field) field_at(value, self->field)

typedef struct {
    PyObject *classes[NUM_CLASSES];
    PyObject *law_best, *law_confidence, *law_choose;
    PyObject *draftings, *step_times, *choice_fields; /* names */
    PyObject *because_cost, *because_stay, *because_unsure;
    PyObject *preferred, *as_it_is; /* what costs are multiplied with */
    double worth, max_num_seqs, sure, moves;
    FIELDS(AS_MEMBER)
} State;

/* What an `Offer` holds, borrowed. */
typedef struct {
    PyObject *pool, *drafting, *step_times, *outlook, *eta, *preference;
} Parts;

/* What the request and the pool say, the same for each of its workers. */
typedef struct {
    PyObject *step_times;
    double fill, context, prompt_tokens, output_tokens, eta, preference, inverse_tau, seats;
    double limit;
} Case;

typedef struct {
    PyObject *worker, *step; /* borrowed; owned */
    double running, scheduled, pass_s, before_s, prefill_s, queue, harm, slope_s, cost_s;
    double turn;
} Sum;

static int is_a(const State *self, PyObject *value, int class) {
    return value != NULL && (PyObject *)Py_TYPE(value) == self->classes[class];
}

static int same_text(PyObject *one, PyObject *other) {
    if (one == other) return 1;
    return PyUnicode_CheckExact(one) && PyUnicode_CheckExact(other) &&
           PyUnicode_Compare(one, other) == 0;
}

/* ---- one worker ----------------------------------------------------------------------------- */

static int seats_of(const State *self, const Case *at, PyObject *worker, double *seats) {
    PyObject *load = GET(worker, WORKER_load);
    if (!is_a(self, load, LOAD)) return 0;
    *seats = at->seats;
    PyObject *waiting = GET(load, LOAD_waiting), *running = GET(load, LOAD_running);
    if (waiting == Py_None || running == Py_None) return 1;
    double num_waiting, num_running;
    if (!as_double(waiting, &num_waiting) || !as_double(running, &num_running)) return 0;
    if (num_waiting != 0.0 && num_running != 0.0) {
        double now = 1.0 > num_running ? 1.0 : num_running;
        if (now < *seats) *seats = now;
    }
    return 1;
}

static double seconds(double fixed_s, double token_s, double kv_token_s, double running,
                      double scheduled, double context) {
    return fixed_s + token_s * scheduled + kv_token_s * running * context;
}

/* How long a worker's passes take, owned. A mapping may work it out when it is first asked for. */
static PyObject *step_of(PyObject *step_times, PyObject *url) {
    if (PyDict_Check(step_times)) {
        PyObject *known = PyDict_GetItemWithError(step_times, url);
        if (known != NULL || PyErr_Occurred()) return Py_XNewRef(known);
    }
    return PyObject_GetItem(step_times, url);
}

/* 1 if it could be reckoned, 0 if it is the law's to do, -1 with an exception. `sum->step` is owned
 * where it is 1. */
static int reckon(const State *self, const Case *at, PyObject *worker, Sum *sum) {
    double in_flight, elsewhere, share, drafting, seats, fixed_s, token_s, kv_token_s;
    if (!as_double(GET(worker, WORKER_in_flight), &in_flight) ||
        !as_double(GET(worker, WORKER_elsewhere), &elsewhere) ||
        !as_double(GET(worker, WORKER_share), &share) || share == 0.0 ||
        !as_double(GET(worker, WORKER_drafting), &drafting) ||
        !as_double(GET(worker, WORKER_last_picked), &sum->turn) ||
        !seats_of(self, at, worker, &seats) || seats == 0.0)
        return 0;
    PyObject *step = step_of(at->step_times, GET(worker, WORKER_url));
    if (step == NULL) return -1;
    if (!is_a(self, step, STEP) || !as_double(GET(step, STEP_fixed_s), &fixed_s) ||
        !as_double(GET(step, STEP_token_s), &token_s) ||
        !as_double(GET(step, STEP_kv_token_s), &kv_token_s)) {
        Py_DECREF(step);
        return 0;
    }
    double counted = in_flight + elsewhere;
    double present = (counted + 1.0) / share - 1.0;
    double running = present < seats ? present : seats - 1.0;
    double beside = running;
    if (counted > 0) {
        double slots = drafting + elsewhere * at->limit;
        beside *= 1.0 + slots * at->fill / counted;
    }
    double scheduled = beside + 1.0 + at->limit * at->fill;
    double pass_s = seconds(fixed_s, token_s, kv_token_s, running + 1.0, scheduled, at->context);
    double before_s = seconds(fixed_s, token_s, kv_token_s, running, beside, at->context);
    if (pass_s == 0.0) {
        Py_DECREF(step);
        return 0;
    }
    double waiting = present + 1.0 - seats;
    sum->worker = worker;
    sum->step = step;
    sum->running = running;
    sum->scheduled = scheduled;
    sum->pass_s = pass_s;
    sum->before_s = before_s;
    sum->prefill_s = pass_s + token_s * at->prompt_tokens;
    sum->queue = (waiting > 0.0 ? waiting : 0.0) / seats;
    sum->harm = at->eta * running * (1.0 - before_s / pass_s);
    sum->slope_s = at->output_tokens * pass_s * (1.0 + sum->queue + sum->harm) * at->preference;
    sum->cost_s = sum->prefill_s * at->preference + sum->slope_s * at->inverse_tau;
    if (isnan(sum->cost_s)) { /* how those are ordered is Python's sort's to say */
        Py_DECREF(step);
        return 0;
    }
    return 1;
}

/* ---- the best of a pool --------------------------------------------------------------------- */

/* Whether all that `at` needs is there, as usual. `limit` is the pool's k. */
static int read_case(const State *self, const Parts *parts, Case *at, Py_ssize_t *limit) {
    PyObject *pool = parts->pool, *drafting = parts->drafting, *outlook = parts->outlook;
    if (!is_a(self, pool, POOL) || !is_a(self, drafting, DRAFTING) ||
        !is_a(self, outlook, OUTLOOK) || parts->step_times == NULL)
        return 0;
    PyObject *taus = GET(drafting, DRAFTING_inverse_taus);
    PyObject *means = GET(drafting, DRAFTING_mean_inverses);
    PyObject *seats = GET(pool, POOL_max_num_seqs);
    if (!PyTuple_CheckExact(taus) || !PyTuple_CheckExact(means)) return 0;
    *limit = PyTuple_GET_SIZE(taus) - 1;
    if (*limit < 0 || *limit >= PyTuple_GET_SIZE(means)) return 0;
    at->step_times = parts->step_times;
    at->limit = (double)*limit;
    at->seats = 0.0;
    if (seats != Py_None && !as_double(seats, &at->seats)) return 0;
    if (at->seats == 0.0) at->seats = self->max_num_seqs;
    return as_double(GET(drafting, DRAFTING_fill), &at->fill) &&
           as_double(GET(outlook, OUTLOOK_context), &at->context) &&
           as_double(GET(outlook, OUTLOOK_prompt_tokens), &at->prompt_tokens) &&
           as_double(GET(outlook, OUTLOOK_output_tokens), &at->output_tokens) &&
           as_double(parts->eta, &at->eta) && as_double(parts->preference, &at->preference) &&
           as_double(PyTuple_GET_ITEM(means, *limit), &at->inverse_tau);
}

static PyObject *terms_of(const State *self, const Parts *parts, const Sum *sum, Py_ssize_t limit) {
    PyObject *made[] = {
        PyLong_FromSsize_t(limit),          PyFloat_FromDouble(sum->running),
        PyFloat_FromDouble(sum->scheduled), PyFloat_FromDouble(sum->pass_s),
        PyFloat_FromDouble(sum->before_s),  PyFloat_FromDouble(sum->prefill_s),
        PyFloat_FromDouble(sum->queue),     PyFloat_FromDouble(sum->harm),
        PyFloat_FromDouble(sum->slope_s),   PyFloat_FromDouble(sum->cost_s),
    };
    enum { NUM_MADE = sizeof made / sizeof *made };
    PyObject *terms = NULL;
    int complete = 1;
    for (int i = 0; i < NUM_MADE; i++) complete = complete && made[i] != NULL;
    if (complete) {
        PyObject *fields[] = {
            GET(parts->pool, POOL_name),
            GET(sum->worker, WORKER_url),
            made[0], /* k */
            PyTuple_GET_ITEM(GET(parts->drafting, DRAFTING_mean_inverses), limit),
            GET(parts->outlook, OUTLOOK_output_tokens),
            made[1], /* running */
            made[2], /* scheduled */
            GET(sum->step, STEP_known_to),
            made[3], /* pass_s */
            made[4], /* pass_before_s */
            made[5], /* prefill_s */
            made[6], /* queue */
            made[7], /* harm */
            parts->preference,
            made[8], /* slope_s */
            made[9], /* cost_s */
        };
        terms =
            PyObject_Vectorcall(self->classes[TERMS], fields, sizeof fields / sizeof *fields, NULL);
    }
    for (int i = 0; i < NUM_MADE; i++) Py_XDECREF(made[i]);
    return terms;
}

/* Of the workers that are up (or, if `on_trial`, of those due for a trial) the cheapest, and of
 * equals the one whose turn was longest ago. As `reckon`; 0 too if there is none. */
static int cheapest(const State *self, const Case *at, PyObject *workers, int on_trial, Sum *best) {
    best->step = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(workers); i++) {
        PyObject *worker = PyTuple_GET_ITEM(workers, i);
        if (GET(worker, WORKER_up) != Py_True) continue;
        if (on_trial && GET(worker, WORKER_on_trial) != Py_True) continue;
        Sum sum;
        int done = reckon(self, at, worker, &sum);
        if (done != 1) {
            Py_CLEAR(best->step);
            return done;
        }
        if (best->step == NULL || sum.cost_s < best->cost_s ||
            (sum.cost_s == best->cost_s && sum.turn < best->turn)) {
            Py_XDECREF(best->step);
            *best = sum;
        } else {
            Py_DECREF(sum.step);
        }
    }
    return best->step != NULL;
}

/* Whether all workers are as usual; whether one that is up is due for a trial. */
static int are_usual(const State *self, PyObject *workers, int *on_trial) {
    if (!PyTuple_CheckExact(workers)) return 0;
    *on_trial = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(workers); i++) {
        PyObject *worker = PyTuple_GET_ITEM(workers, i);
        if (!is_a(self, worker, WORKER) || GET(worker, WORKER_per_request_k) != Py_False) return 0;
        PyObject *up = GET(worker, WORKER_up), *trial = GET(worker, WORKER_on_trial);
        if (!PyBool_Check(up) || !PyBool_Check(trial)) return 0;
        *on_trial = *on_trial || (up == Py_True && trial == Py_True);
    }
    return 1;
}

/* The terms of the best of a pool, or of its worker at `url` where that is not NULL and is up: owned.
 * NULL with an exception, or without one if it is the law's to do. */
static PyObject *offered(const State *self, const Parts *parts, PyObject *url) {
    Case at;
    Sum sum;
    Py_ssize_t limit;
    int on_trial, done = 0;
    if (!read_case(self, parts, &at, &limit)) return NULL;
    PyObject *workers = GET(parts->pool, POOL_workers);
    if (workers == NULL || !are_usual(self, workers, &on_trial)) return NULL;
    if (url == NULL) {
        done = cheapest(self, &at, workers, on_trial, &sum);
    } else {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(workers); i++) {
            PyObject *worker = PyTuple_GET_ITEM(workers, i);
            if (GET(worker, WORKER_up) == Py_True && same_text(GET(worker, WORKER_url), url)) {
                done = reckon(self, &at, worker, &sum);
                break;
            }
        }
    }
    if (done != 1) return NULL;
    PyObject *terms = terms_of(self, parts, &sum, limit);
    Py_DECREF(sum.step);
    return terms;
}

static PyObject *best(PyObject *module, PyObject *offer) {
    const State *self = PyModule_GetState(module);
    if (self->law_best == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    PyObject *terms = NULL;
    if (is_a(self, offer, OFFER)) {
        Parts parts = {
            GET(offer, OFFER_pool),    GET(offer, OFFER_drafting), GET(offer, OFFER_step_times),
            GET(offer, OFFER_outlook), GET(offer, OFFER_eta),      GET(offer, OFFER_preference),
        };
        terms = offered(self, &parts, NULL);
    }
    if (terms != NULL || PyErr_Occurred()) return terms;
    return PyObject_CallOneArg(self->law_best, offer);
}

/* ---- how sure it is ------------------------------------------------------------------------- */

static int read_terms(const State *self, PyObject *terms, Py_ssize_t *k, double *fixed_s,
                      double *slope_s) {
    double prefill_s, preference;
    PyObject *length = GET(terms, TERMS_k);
    if (length == NULL || !PyLong_CheckExact(length) ||
        !as_double(GET(terms, TERMS_prefill_s), &prefill_s) ||
        !as_double(GET(terms, TERMS_preference), &preference) ||
        !as_double(GET(terms, TERMS_slope_s), slope_s))
        return 0;
    *fixed_s = prefill_s * preference;
    *k = PyLong_AsSsize_t(length);
    if (*k == -1) PyErr_Clear();
    return 1;
}

/* 1 / tokens a pass with k, by case: borrowed, NULL if there is no such k. */
static PyObject *by_case(const State *self, PyObject *drafting, Py_ssize_t k) {
    PyObject *rows = GET(drafting, DRAFTING_inverse_taus);
    if (!PyTuple_CheckExact(rows) || k < 0 || k >= PyTuple_GET_SIZE(rows)) return NULL;
    PyObject *row = PyTuple_GET_ITEM(rows, k);
    return PyTuple_CheckExact(row) ? row : NULL;
}

static int sum_up(const State *self, PyObject *const *args, double *sure) {
    PyObject *chosen = args[0], *other = args[1], *ours = args[2], *theirs = args[3];
    if (!is_a(self, chosen, TERMS) || !is_a(self, other, TERMS) || !is_a(self, ours, DRAFTING) ||
        !is_a(self, theirs, DRAFTING))
        return 0;
    PyObject *pool = GET(chosen, TERMS_pool), *default_pool = GET(other, TERMS_pool);
    if (!PyUnicode_CheckExact(pool) || !PyUnicode_CheckExact(default_pool)) return 0;
    if (same_text(pool, default_pool)) {
        *sure = 1.0;
        return 1;
    }
    Py_ssize_t k, default_k;
    double fixed_s, slope_s, default_fixed_s, default_slope_s;
    if (!read_terms(self, chosen, &k, &fixed_s, &slope_s) ||
        !read_terms(self, other, &default_k, &default_fixed_s, &default_slope_s))
        return 0;
    PyObject *shares = GET(ours, DRAFTING_shares), *row = by_case(self, ours, k);
    PyObject *default_row = by_case(self, theirs, default_k);
    if (row == NULL || default_row == NULL || !PyTuple_CheckExact(shares) ||
        PyTuple_GET_SIZE(shares) != PyTuple_GET_SIZE(row) ||
        PyTuple_GET_SIZE(shares) != PyTuple_GET_SIZE(default_row))
        return 0;
    double margin_s = self->worth * default_fixed_s - fixed_s;
    double theirs_s = self->worth * default_slope_s;
    *sure = 0.0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shares); i++) {
        double share, one, another;
        if (!as_double(PyTuple_GET_ITEM(shares, i), &share) ||
            !as_double(PyTuple_GET_ITEM(row, i), &one) ||
            !as_double(PyTuple_GET_ITEM(default_row, i), &another))
            return 0;
        if (slope_s * one < margin_s + theirs_s * another) *sure += share;
    }
    return !isnan(*sure);
}

static PyObject *confidence(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    double sure;
    if (self->law_confidence == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "configure comes first");
        return NULL;
    }
    if (num_args == 4 && sum_up(self, args, &sure)) return PyFloat_FromDouble(sure);
    return PyObject_Vectorcall(self->law_confidence, args, (size_t)num_args, NULL);
}

/* ---- the choice ----------------------------------------------------------------------------- */

/* What each pool offers, cheapest first once it is sorted. */
typedef struct {
    Parts parts[MOST_POOLS]; /* with owned drafting and step_times */
    PyObject *terms[MOST_POOLS];
    Py_ssize_t num_pools, order[MOST_POOLS];
    Py_ssize_t default_pool; /* its place, or -1 */
} Offers;

static double cost_of(const State *self, PyObject *terms) {
    return PyFloat_AS_DOUBLE(GET(terms, TERMS_cost_s)); /* which we made */
}

static void let_go(Offers *offers) {
    for (Py_ssize_t i = 0; i < offers->num_pools; i++) {
        Py_XDECREF(offers->parts[i].drafting);
        Py_XDECREF(offers->parts[i].step_times);
        Py_XDECREF(offers->terms[i]);
    }
}

/* 1 if all pools made their offers, 0 if it is the law's to do, -1 with an exception; `offers` are to
 * be let go in each case. */
static int gather(const State *self, PyObject *pools, PyObject *outlook, PyObject *adaptive,
                  PyObject *default_pool, PyObject *preferred, Offers *offers) {
    PyObject *expectations = GET(adaptive, ADAPTIVE_expectations);
    PyObject *draftings = PyObject_CallMethodOneArg(expectations, self->draftings, outlook);
    if (draftings == NULL) return -1;
    int done = 1;
    for (Py_ssize_t i = 0; done == 1 && i < PySequence_Fast_GET_SIZE(pools); i++) {
        PyObject *pool = PySequence_Fast_GET_ITEM(pools, i);
        if (!is_a(self, pool, POOL)) {
            done = 0;
            break;
        }
        PyObject *name = GET(pool, POOL_name);
        int is_preferred = preferred != Py_None && same_text(name, preferred);
        PyObject *step_times = PyObject_CallMethodOneArg(expectations, self->step_times, name);
        Parts *parts = &offers->parts[i];
        *parts = (Parts){
            pool,
            step_times == NULL ? NULL : PyObject_GetItem(draftings, name),
            step_times,
            outlook,
            GET(adaptive, ADAPTIVE_eta),
            is_preferred ? self->preferred : self->as_it_is,
        };
        offers->terms[i] = NULL;
        offers->num_pools = i + 1;
        if (parts->drafting == NULL || parts->step_times == NULL) {
            done = -1;
            break;
        }
        offers->terms[i] = offered(self, parts, NULL);
        if (offers->terms[i] == NULL) done = PyErr_Occurred() ? -1 : 0;
        if (same_text(name, default_pool)) offers->default_pool = i;
    }
    Py_DECREF(draftings);
    return done;
}

/* By insertion: there are few, and those that cost the same keep their order. */
static void sort_by_cost(const State *self, Offers *offers) {
    for (Py_ssize_t i = 0; i < offers->num_pools; i++) {
        double cost_s = cost_of(self, offers->terms[i]);
        Py_ssize_t at = i;
        for (; at > 0 && cost_of(self, offers->terms[offers->order[at - 1]]) > cost_s; at--)
            offers->order[at] = offers->order[at - 1];
        offers->order[at] = i;
    }
}

/* How sure it is that terms of the pool at `i` are worth leaving the default for: 1, or 0 if that is
 * the law's to say. Without a default there is nothing to leave, and `sure` is NaN. */
static int be_sure(const State *self, const Offers *offers, Py_ssize_t i, PyObject *terms,
                   double *sure) {
    Py_ssize_t of_default = offers->default_pool;
    if (of_default < 0) {
        *sure = Py_NAN;
        return 1;
    }
    PyObject *asked[] = {terms, offers->terms[of_default], offers->parts[i].drafting,
                         offers->parts[of_default].drafting};
    return sum_up(self, asked, sure);
}

static PyObject *chosen(const State *self, const Offers *offers, PyObject *terms, double sure,
                        PyObject *reason) {
    PyObject *weighed = PyTuple_New(offers->num_pools);
    if (weighed == NULL) return NULL;
    for (Py_ssize_t i = 0; i < offers->num_pools; i++)
        PyTuple_SET_ITEM(weighed, i, Py_NewRef(offers->terms[offers->order[i]]));
    PyObject *confidence = isnan(sure) ? Py_NewRef(Py_None) : PyFloat_FromDouble(sure);
    PyObject *choice = NULL, *both = NULL;
    if (confidence != NULL) {
        PyObject *fields[] = {terms, weighed, confidence};
        choice = PyObject_Vectorcall(self->classes[CHOICE], fields, 0, self->choice_fields);
    }
    if (choice != NULL) both = PyTuple_Pack(2, choice, reason);
    Py_XDECREF(choice);
    Py_XDECREF(confidence);
    Py_DECREF(weighed);
    return both;
}

/* A request whose conversation has a place: there, unless elsewhere is clearly cheaper. NULL with an
 * exception, or without one if it is the law's to do. */
static PyObject *stay_or_move(const State *self, const Offers *offers, PyObject *place) {
    PyObject *pool = GET(place, PLACE_pool), *url = GET(place, PLACE_worker);
    Py_ssize_t first = offers->order[0], i = 0;
    while (i < offers->num_pools && !same_text(GET(offers->parts[i].pool, POOL_name), pool)) i++;
    if (i == offers->num_pools) return NULL;
    PyObject *there = offers->terms[i], *result = NULL;
    there = same_text(GET(there, TERMS_worker), url) ? Py_NewRef(there)
                                                     : offered(self, &offers->parts[i], url);
    if (there == NULL) return NULL;
    PyObject *cheapest_of_all = offers->terms[first];
    int moves = cost_of(self, cheapest_of_all) < self->moves * cost_of(self, there);
    double sure;
    if (moves && be_sure(self, offers, first, cheapest_of_all, &sure))
        result = chosen(self, offers, cheapest_of_all, sure, self->because_cost);
    else if (!moves && be_sure(self, offers, i, there, &sure))
        result = chosen(self, offers, there, sure, self->because_stay);
    Py_DECREF(there);
    return result;
}

/* The cheapest that is sure. As `stay_or_move`. */
static PyObject *cheapest_sure(const State *self, const Offers *offers) {
    for (Py_ssize_t at = 0; at < offers->num_pools; at++) {
        Py_ssize_t i = offers->order[at];
        double sure;
        if (!be_sure(self, offers, i, offers->terms[i], &sure)) return NULL;
        if (!(sure < self->sure)) {
            PyObject *reason = at == 0 ? self->because_cost : self->because_unsure;
            return chosen(self, offers, offers->terms[i], sure, reason);
        }
    }
    return NULL;
}

static PyObject *choose(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *self = PyModule_GetState(module);
    if (self->law_choose == NULL || num_args != 5) {
        PyErr_SetString(PyExc_TypeError, "choose is configured, and takes five arguments");
        return NULL;
    }
    PyObject *pools = args[0], *adaptive = args[2], *result = NULL;
    double draw, exploration;
    Offers offers = {.num_pools = 0, .default_pool = -1};
    int is_usual =
        is_a(self, adaptive, ADAPTIVE) && (PyList_CheckExact(pools) || PyTuple_CheckExact(pools)) &&
        PySequence_Fast_GET_SIZE(pools) > 0 && PySequence_Fast_GET_SIZE(pools) <= MOST_POOLS &&
        as_double(GET(adaptive, ADAPTIVE_draw), &draw) &&
        as_double(GET(adaptive, ADAPTIVE_exploration), &exploration);
    PyObject *place = is_usual ? GET(adaptive, ADAPTIVE_place) : NULL;
    if (is_usual && (place == Py_None ? draw >= exploration : is_a(self, place, PLACE))) {
        int done = gather(self, pools, args[1], adaptive, args[3], args[4], &offers);
        if (done == 1) {
            sort_by_cost(self, &offers);
            result = place == Py_None ? cheapest_sure(self, &offers)
                                      : stay_or_move(self, &offers, place);
        }
        let_go(&offers);
    }
    if (result != NULL || PyErr_Occurred()) return result;
    return PyObject_Vectorcall(self->law_choose, args, (size_t)num_args, NULL);
}

/* ---- the module ----------------------------------------------------------------------------- */

static int take_number(PyObject *law, const char *name, double *found) {
    PyObject *value = PyObject_GetAttrString(law, name);
    if (value == NULL) return 0;
    *found = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return !PyErr_Occurred();
}

static PyObject *configure(PyObject *module, PyObject *args) {
    State *self = PyModule_GetState(module);
    PyObject *offers, *law, *types, *reasons;
    if (!PyArg_ParseTuple(args, "OOO", &offers, &law, &types)) return NULL;
    for (int i = 0; i < NUM_CLASSES; i++) {
        PyObject *from = i < NUM_OF_TYPES ? types : i < NUM_OF_OFFERS ? offers : law;
        if (!take(&self->classes[i], from, CLASSES[i])) return NULL;
    }
    FIELDS(LOOKED_UP)
    if (!take_number(offers, "WORTH", &self->worth) ||
        !take_number(offers, "MAX_NUM_SEQS", &self->max_num_seqs) ||
        !take_number(law, "SURE", &self->sure) || !take_number(law, "MOVES", &self->moves))
        return NULL;
    if ((reasons = PyObject_GetAttrString(law, "Reason")) == NULL) return NULL;
    int are_there = take(&self->because_cost, reasons, "COST") &&
                    take(&self->because_stay, reasons, "STAY") &&
                    take(&self->because_unsure, reasons, "UNSURE");
    Py_DECREF(reasons);
    if (!are_there || !take(&self->preferred, law, "PREFERENCE")) return NULL;
    Py_XSETREF(self->draftings, PyUnicode_InternFromString("draftings"));
    Py_XSETREF(self->step_times, PyUnicode_InternFromString("step_times"));
    Py_XSETREF(self->choice_fields, Py_BuildValue("(sss)", "chosen", "weighed", "confidence"));
    Py_XSETREF(self->as_it_is, PyFloat_FromDouble(1.0));
    if (PyErr_Occurred() || !take(&self->law_best, offers, "best") ||
        !take(&self->law_confidence, offers, "confidence") ||
        !take(&self->law_choose, law, "choose"))
        return NULL;
    Py_RETURN_NONE;
}

#define OBJECTS(X) \
    X(law_best) X(law_confidence) X(law_choose) X(draftings) X(step_times) X(choice_fields) \
    X(because_cost) X(because_stay) X(because_unsure) X(preferred) X(as_it_is)
#define VISITED(name) Py_VISIT(self->name);
#define CLEARED(name) Py_CLEAR(self->name);

static int traverse(PyObject *module, visitproc visit, void *arg) {
    State *self = PyModule_GetState(module);
    for (int i = 0; i < NUM_CLASSES; i++) Py_VISIT(self->classes[i]);
    OBJECTS(VISITED)
    return 0;
}

static int clear(PyObject *module) {
    State *self = PyModule_GetState(module);
    for (int i = 0; i < NUM_CLASSES; i++) Py_CLEAR(self->classes[i]);
    OBJECTS(CLEARED)
    return 0;
}

static void finish(void *module) { clear(module); }

static PyMethodDef METHODS[] = {
    {"configure", configure, METH_VARARGS,
     "Takes the two modules of the law, and that of its types."},
    {"choose", (PyCFunction)(void (*)(void))choose, METH_FASTCALL,
     "As `paceline.core.choose.choose`, by position."},
    {"best", best, METH_O, "As `paceline.core.offers.best`."},
    {"confidence", (PyCFunction)(void (*)(void))confidence, METH_FASTCALL,
     "As `paceline.core.offers.confidence`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot SLOTS[] = {{0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    "costs",
    "The twin of `paceline.core.choose`.",
    sizeof(State),
    METHODS,
    SLOTS,
    traverse,
    clear,
    finish,
};

PyMODINIT_FUNC PyInit_costs(void) { return PyModuleDef_Init(&MODULE); }
