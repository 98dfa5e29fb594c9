/* The twin of `core/look.py`: a bounded look at a text of ASCII, without an object for each word.
 *
 * It follows the law function by function, `split` and what it calls in `core/material.py`,
 * `word_signals` and `text_signals` in `core/signals.py`, under the same names where they can be
 * kept: the reasons stand there. Tables and numbers come from there too, once, by `configure`.
 * Whatever is not a plain `str` of ASCII is the law's to look at.
 *
 * Words and lines are spans of the text or, where that is cut or has carriage returns, of a copy of
 * what is read of it on the stack. What is found is kept as bits, of which names are made at the end.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char Byte;

enum {
    MOST_LOOKED_AT = 4096, /* the buffers are that large; `configure` holds the law to it */
    MOST_AT_ENDS = 1024,
    MOST_CONCEPTS = 63, /* one more bit is for words that are none */
    MOST_LANGUAGES = 256,
    MOST_SIZES = 8,
    MOST_MARKS = 16,
    LONGEST_OPENER = 16,
};

/* ---- spans of text ---------------------------------------------------------------------------- */

typedef struct {
    const Byte *at; /* never NULL, though there may be nothing at it */
    Py_ssize_t size;
} Span;

static inline Py_ssize_t least(Py_ssize_t one, Py_ssize_t other) {
    return one < other ? one : other;
}

/* text[:n], text[n:] and text[-n:] with n of zero or more, and nothing of text[-0:] */
static inline Span head_of(Span text, Py_ssize_t n) { return (Span){text.at, least(n, text.size)}; }

static inline Span from(Span text, Py_ssize_t n) {
    n = least(n, text.size);
    return (Span){text.at + n, text.size - n};
}

static inline Span tail_of(Span text, Py_ssize_t n) {
    return from(text, text.size - least(n, text.size));
}

/* text[begin:end], which is nothing where the end comes first */
static inline Span between(Span text, Py_ssize_t begin, Py_ssize_t end) {
    return from(head_of(text, end > begin ? end : begin), begin);
}

static inline bool ends_in(Span text, Byte one) {
    return text.size > 0 && text.at[text.size - 1] == one;
}

static inline Py_ssize_t find_byte(Span text, Byte one) {
    const Byte *hit = memchr(text.at, one, (size_t)text.size);
    return hit ? hit - text.at : -1;
}

static inline bool has_byte(Span text, Byte one) { return find_byte(text, one) >= 0; }

static inline Py_ssize_t find_last_byte(Span text, Byte one) {
#ifdef HAVE_MEMRCHR
    const Byte *hit = memrchr(text.at, one, (size_t)text.size);
    return hit ? hit - text.at : -1;
#else
    Py_ssize_t place = text.size - 1;
    while (place >= 0 && text.at[place] != one) place--;
    return place;
#endif
}

static inline bool is_at(const Byte *at, const char *mark, Py_ssize_t size) {
    return memcmp(at, mark, (size_t)size) == 0;
}

/* Where a mark of one or more characters begins, first or last; -1 where it is not. */
static inline Py_ssize_t find(Span text, const char *mark, Py_ssize_t size) {
    for (Py_ssize_t place = 0; place + size <= text.size; place++) {
        Span rest = between(text, place, text.size - size + 1);
        Py_ssize_t step = find_byte(rest, (Byte)mark[0]);
        if (step < 0) break;
        place += step;
        if (is_at(text.at + place + 1, mark + 1, size - 1)) return place;
    }
    return -1;
}

static inline Py_ssize_t find_last(Span text, const char *mark, Py_ssize_t size) {
    for (Py_ssize_t end = text.size - size + 1; end > 0;) {
        Py_ssize_t place = find_last_byte(head_of(text, end), (Byte)mark[0]);
        if (place < 0 || is_at(text.at + place, mark, size)) return place;
        end = place;
    }
    return -1;
}

/* Of marks that are written here: their size is known to the compiler. */
#define FIND(text, mark) find(text, mark, (Py_ssize_t)sizeof(mark) - 1)
#define FIND_LAST(text, mark) find_last(text, mark, (Py_ssize_t)sizeof(mark) - 1)
#define HAS(text, mark) (FIND(text, mark) >= 0)

/* A text around a mark, as `partition` and `rpartition` cut it: `there` is false without one. */
typedef struct {
    Span head, tail;
    bool there;
} Cut;

static inline Cut cut_at(Span text, Py_ssize_t place, Py_ssize_t size) {
    return (Cut){head_of(text, place), from(text, place + size), true};
}

static inline Cut partition(Span text, const char *mark, Py_ssize_t size) {
    Py_ssize_t place = find(text, mark, size);
    if (place < 0) return (Cut){text, from(text, text.size), false};
    return cut_at(text, place, size);
}

static inline Cut rpartition(Span text, const char *mark, Py_ssize_t size) {
    Py_ssize_t place = find_last(text, mark, size);
    if (place < 0) return (Cut){head_of(text, 0), text, false};
    return cut_at(text, place, size);
}

/* What `str.split()` and `str.strip()` take for white space. */
static inline bool is_space(Byte one) { return Py_UNICODE_ISSPACE(one); }

static inline bool is_margin(Byte one) { return one == '\n' || one == ' '; }

static inline Span rstrip(Span text, bool (*is_cut)(Byte)) {
    while (text.size > 0 && is_cut(text.at[text.size - 1])) text.size--;
    return text;
}

static inline Span strip(Span text, bool (*is_cut)(Byte)) {
    while (text.size > 0 && is_cut(text.at[0])) {
        text.at++;
        text.size--;
    }
    return rstrip(text, is_cut);
}

/* ---- what the law knows ----------------------------------------------------------------------- */

enum { WORD = 1, STEM = 2, TO = 4, LANGUAGE = 8, OPENER = 16 };

/* A string of the law's tables, and all that they say of it. */
typedef struct {
    PyObject *text; /* keeps what `at` points to */
    const Byte *at;
    Py_ssize_t size;
    uint8_t kinds;
    uint8_t word, stem; /* concepts, by their place; read only if `kinds` says so */
    uint8_t language;   /* its number among the languages */
} Known;

/* A place of the hash table: most strings that are not known are told by `tag` alone. */
typedef struct {
    uint16_t number; /* of a Known, from 1; 0 is an empty place */
    uint16_t tag;
} Slot;

/* Marks to search for, and which of them have a character in the first and in the second place. */
typedef struct {
    PyObject *all; /* keeps what `each` points to */
    Span each[MOST_MARKS];
    Py_ssize_t size;
    uint16_t first[128], second[128]; /* a bit for each mark; one of a single character has none */
} Marks;

/* The signals that are not of a concept or a length. */
typedef enum {
    NO_ASK,
    TO_LANGUAGE,
    ENDS_IN_QUESTION,
    CODE_IN_ASK,
    FILL_IN_THE_MIDDLE,
    DIFF,
    UNFINISHED_CODE,
    NEW_FILE,
    READ_ONLY,
    NUM_FACTS,
} Fact;

static const char *const FACTS[NUM_FACTS] = {
    "no-ask", "to-language",     "ends-in-question", "code-in-ask", "fill-in-the-middle",
    "diff",   "unfinished-code", "new-file",         "read-only",
};

typedef enum { MENTIONS, ASKS, FIRST, SECOND, NUM_SAYINGS } Saying;
static const char *const SAYINGS[NUM_SAYINGS] = {"mentions", "asks", "first", "second"};

typedef struct {
    PyObject *law;
    Known *known;
    Slot *slots;
    size_t num_known, last_slot, num_languages;
    uint64_t weak, actions; /* of concepts, a bit each */
    Py_ssize_t none;        /* the number of concepts, and the place of what is none */

    PyObject *of_concept[NUM_SAYINGS][MOST_CONCEPTS + 1]; /* names of signals */
    PyObject *of_length[MOST_SIZES + 1];
    PyObject *of_fact[NUM_FACTS];

    Marks unfinished_ends, new_file, fill_marks, reading_marks;
    Py_ssize_t ask_sizes[MOST_SIZES], num_ask_sizes;
    Py_ssize_t stem_chars, opening_words, end_chars, reading_chars;
    Py_ssize_t look_chars, ask_chars, sample_chars, short_sample_chars;
    Py_ssize_t paragraph_chars, short_paragraph_chars, max_lines;
    double code_share, line_share, long_line_share;

    Byte word_byte[256]; /* lower case, and 0 for what stands between words */
    Byte is_symbol[256], is_code_start[256], is_open_end[256];
} State;

#define SEED 0x811c9dc5u
static inline uint32_t hashed(uint32_t hash, Byte one) { return (hash ^ one) * 0x01000193u; }

/* The table is walked from the upper bits of a hash, and its lower ones tell strings apart. */
static inline size_t slot_of(const State *state, uint32_t hash) {
    return (hash >> 16 ^ hash >> 8) & state->last_slot;
}

/* What is known of a word, which is spelt as in the text. */
static const Known *known_of(const State *state, Span word, uint32_t hash) {
    for (size_t place = slot_of(state, hash);; place = (place + 1) & state->last_slot) {
        Slot slot = state->slots[place];
        if (!slot.number) return NULL;
        if (slot.tag != (uint16_t)hash) continue;
        const Known *known = &state->known[slot.number - 1];
        if (known->size != word.size) continue;
        Py_ssize_t same = 0;
        while (same < word.size && state->word_byte[word.at[same]] == known->at[same]) same++;
        if (same == word.size) return known;
    }
}

static uint32_t hash_of(const State *state, Span word) {
    uint32_t hash = SEED;
    for (Py_ssize_t place = 0; place < word.size; place++)
        hash = hashed(hash, state->word_byte[word.at[place]]);
    return hash;
}

/* ---- code and prose --------------------------------------------------------------------------- */

/* Whether `symbol_share` of the text is more: of source code the first lines tell. */
static bool has_symbols(const State *state, Span text, double share) {
    Py_ssize_t num_symbols = 0;
    for (Span rest = text; rest.size > 0;) {
        Py_ssize_t place = find_byte(rest, '(');
        if (place < 0) break;
        bool is_first = rest.at + place == text.at;
        if (is_first || rest.at[place - 1] != ' ') num_symbols += 2;
        rest = from(rest, place + 1);
    }
    for (Py_ssize_t place = 0; place < text.size;) {
        Py_ssize_t end = least(place + 64, text.size);
#pragma GCC unroll 8
        for (; place < end; place++) num_symbols += state->is_symbol[text.at[place]];
        if ((double)num_symbols / (double)text.size > share) return true;
    }
    return false;
}

static bool is_code(const State *state, Span text) {
    if (has_symbols(state, text, state->code_share)) return true;
    Py_ssize_t num_lines = 0, num_indented = 0;
    for (Py_ssize_t place; (place = find_byte(text, '\n')) >= 0;) {
        text = from(text, place + 1);
        num_lines++;
        num_indented += text.size > 0 && text.at[0] == '\t';
        num_indented += text.size > 1 && text.at[0] == ' ' && text.at[1] == ' ';
    }
    return num_lines >= 2 && num_indented >= 2 && num_indented * 3 > num_lines;
}

static bool is_opener(const State *state, Span word) {
    Byte lower[LONGEST_OPENER];
    if (word.size > LONGEST_OPENER) return false;
    for (Py_ssize_t place = 0; place < word.size; place++) {
        lower[place] = (Byte)Py_TOLOWER(word.at[place]);
        if (!state->word_byte[lower[place]]) /* a mark, which no opener has */
            return false;
    }
    Span spelt = {lower, word.size};
    const Known *known = known_of(state, spelt, hash_of(state, spelt));
    return known && known->kinds & OPENER;
}

static bool is_code_line(const State *state, Span line) {
    if (!line.size) return false;
    if (line.at[0] == '<' && ends_in(line, '>')) {
        Span inside = from(line, find_byte(line, '>') + 1);
        Py_ssize_t last = find_last_byte(inside, '<');
        if (last > 0) line = head_of(inside, last);
    }
    if (state->is_code_start[line.at[0]] || ends_in(line, '{') || ends_in(line, '}') ||
        ends_in(line, ';'))
        return true;
    bool opens = false, imports = false;
    int num_words = 0;
    for (Span rest = line;; num_words++) {
        while (rest.size > 0 && is_space(rest.at[0])) rest = from(rest, 1);
        if (!rest.size) break;
        Span word = rest;
        if (num_words < 6) /* the seventh is all that is left */
            for (word.size = 1; word.size < rest.size && !is_space(rest.at[word.size]);)
                word.size++;
        if (num_words == 0) opens = is_opener(state, word);
        imports = imports || (word.size == 6 && is_at(word.at, "import", 6));
        rest = from(rest, word.size);
    }
    if (!num_words) return false;
    if (opens && (num_words < 4 || imports)) return true;
    bool is_long = num_words > 6 && !opens;
    return has_symbols(state, line, is_long ? state->long_line_share : state->line_share);
}

/* ---- where the caller's words are ------------------------------------------------------------- */

typedef struct {
    Span before, after, material;
    bool is_code;
} Split;

static Split around_lines(const State *state, Span text) {
    Span nothing = head_of(text, 0);
    Cut lines = partition(text, "\n", 1);
    if (lines.there) {
        Span first = lines.head, rest = lines.tail;
        Cut ending = rpartition(rest, "\n", 1);
        Span last = ending.tail;
        if (first.size > state->short_paragraph_chars && 2 * last.size < first.size)
            return (Split){nothing, last, head_of(text, first.size + 1 + ending.head.size), false};
        if (rest.size > first.size) {
            bool code = is_code(state, head_of(rest, state->short_sample_chars));
            return (Split){head_of(first, state->ask_chars), nothing, rest, code};
        }
    }
    Cut colon = partition(text, ": ", 2);
    Py_ssize_t head = colon.head.size, tail = colon.tail.size;
    if (colon.there && head < 200 &&
        (tail > 200 || (head > 14 && tail > 12) || (head > 8 && text.size < 30))) {
        bool code = is_code(state, head_of(colon.tail, state->sample_chars));
        return (Split){colon.head, nothing, colon.tail, code};
    }
    Span rest = tail_of(from(text, state->ask_chars), state->ask_chars);
    return (Split){head_of(text, state->ask_chars), rest, nothing, false};
}

static bool is_material(const State *state, Span block, Py_ssize_t shortest) {
    if (block.size > state->paragraph_chars) return true;
    return block.size > state->short_paragraph_chars && block.size > 3 * shortest;
}

static Span short_line(const State *state, Span line, Span rest) {
    bool is_short = line.size < state->short_paragraph_chars && 3 * line.size < rest.size;
    return is_short ? line : head_of(line, 0);
}

static Split around_prose(const State *state, Span text) {
    Cut gap = partition(text, "\n\n", 2);
    if (!gap.there) return around_lines(state, text);
    Cut ending = rpartition(gap.tail, "\n\n", 2);
    Span head = gap.head, middle = ending.head, tail = ending.tail;
    Py_ssize_t shortest = least(head.size, tail.size);
    bool is_head = !is_material(state, head, shortest);
    bool is_tail = !is_material(state, tail, shortest);
    if (!(is_head || is_tail)) {
        is_head = head.size <= tail.size;
        is_tail = !is_head;
    }
    if (is_head && ends_in(head, ':'))
        is_tail = is_tail && has_byte(tail_of(tail, 2), '?');
    else if (is_head && is_tail && middle.size < state->paragraph_chars &&
             head.size <= tail.size / 3)
        is_tail = tail.size < state->short_paragraph_chars / 2;
    Split parts;
    if (is_head)
        parts.before = head_of(head, state->ask_chars);
    else {
        Cut lines = partition(head, "\n", 1);
        parts.before = short_line(state, lines.head, lines.tail);
    }
    if (is_tail)
        parts.after = tail_of(tail, state->ask_chars);
    else {
        Cut lines = rpartition(tail, "\n", 1);
        parts.after = short_line(state, lines.tail, lines.head);
    }
    /* Without a second gap the law's middle is nothing, and so is what stands before its tail. */
    Py_ssize_t begin = is_head ? head.size + (is_tail || ending.there ? 2 : 0) : 0;
    Py_ssize_t end = is_tail ? head.size + 2 + middle.size : text.size;
    parts.material = between(text, begin, end);
    parts.is_code = is_code(state, head_of(parts.material, state->short_sample_chars));
    return parts;
}

static Split around_code(const State *state, Span text) {
    Span rest = head_of(text, state->ask_chars), before = head_of(text, 0);
    for (Py_ssize_t cuts = 0;; cuts++) {
        Py_ssize_t end = cuts < state->max_lines ? find_byte(rest, '\n') : -1;
        if (is_code_line(state, end < 0 ? rest : head_of(rest, end))) break;
        if (end < 0) /* all of it reads as prose: symbols of another kind */
            return around_prose(state, text);
        before.size = rest.at + end - text.at;
        rest = from(rest, end + 1);
    }
    rest = tail_of(text, state->ask_chars);
    Span after = from(text, text.size);
    for (Py_ssize_t cuts = 0;; cuts++) {
        Py_ssize_t end = cuts < state->max_lines ? find_last_byte(rest, '\n') : -1;
        if (is_code_line(state, from(rest, end + 1))) break;
        after = from(text, rest.at + end + 1 - text.at);
        if (end < 0) break;
        rest = head_of(rest, end);
    }
    Span material = between(text, before.size, text.size - after.size);
    return (Split){rstrip(before, is_space), strip(after, is_space), material, true};
}

/* `text` is what is read of the text, with no carriage returns before line feeds. */
static Split split(const State *state, Span text) {
    text = strip(text, is_margin);
    Py_ssize_t first = FIND(text, "```");
    if (first >= 0) {
        Py_ssize_t last = FIND_LAST(text, "```");
        bool closes = last > first;
        Span after = closes ? strip(from(text, last + 3), is_margin) : head_of(text, 0);
        Span inside = between(text, first + 3, closes ? last : text.size);
        Span before = tail_of(rstrip(head_of(text, first), is_margin), state->ask_chars);
        return (Split){before, head_of(after, state->ask_chars), inside, true};
    }
    if (has_byte(text, '\n')) {
        if (text.size > 40 && is_code(state, head_of(text, state->sample_chars)))
            return around_code(state, text);
    } else if (text.size > 0 && state->is_open_end[text.at[text.size - 1]] &&
               is_code_line(state, text)) {
        Span nothing = head_of(text, 0);
        return (Split){nothing, nothing, text, true};
    }
    return around_prose(state, text);
}

/* ---- what the caller says --------------------------------------------------------------------- */

typedef struct {
    uint64_t said[NUM_SAYINGS]; /* concepts, a bit each */
    uint32_t facts;
    Py_ssize_t length;
} Found;

static inline void note(Found *found, Fact fact) { found->facts |= 1u << fact; }

typedef struct {
    Span text;
    uint32_t hash;
} Word;

/* The next of `words_of`. A dot is no part of a word that it ends, nor are those at the very end. */
static bool next_word(const State *state, Span *rest, Word *word) {
    const Byte *at = rest->at, *end = at + rest->size;
    while (at < end) {
        Byte one;
        if (!state->word_byte[*at]) {
            at++;
            continue;
        }
        const Byte *begin = at;
        uint32_t hash = SEED;
        for (; at < end && (one = state->word_byte[*at]); at++) hash = hashed(hash, one);
        Span text = {begin, at - begin};
        if (at[-1] == '.') {
            /* A mark counts as a blank, and so does all that is no mark but the line feed. */
            if (at == end)
                while (text.size > 0 && ends_in(text, '.')) text.size--;
            else if (*at == '\n' || !is_space(*at) || *at == ' ')
                text.size--;
            if (!text.size) continue;
            hash = hash_of(state, text);
        }
        *word = (Word){text, hash};
        *rest = (Span){at, end - at};
        return true;
    }
    return false;
}

/* What a word's stem means, or none. */
static unsigned stem_of(const State *state, const Word *word, const Known *known) {
    if (word->text.size > state->stem_chars) {
        Span stem = head_of(word->text, state->stem_chars);
        known = known_of(state, stem, hash_of(state, stem));
    }
    return known && known->kinds & STEM ? known->stem : (unsigned)state->none;
}

/* The concepts in one of the two parts; whether the parts so far ask for something. */
static bool hear(const State *state, Span part, bool acts, Found *found) {
    Word word;
    if (!next_word(state, &part, &word)) return acts;
    if (has_byte(word.text, '.') ||
        has_byte(word.text, '/')) { /* the path of a file that follows */
        Word path = word;
        if (!next_word(state, &part, &word)) word = path;
    }
    uint64_t asked = 0, mentioned = 0, seen[MOST_LANGUAGES / 64] = {0};
    unsigned opening[2] = {0, 0};
    bool is_after_to = false, names_language = false;
    Py_ssize_t place = 0;
    do {
        const Known *known = known_of(state, word.text, word.hash);
        unsigned kinds = known ? known->kinds : 0;
        if (place < state->opening_words) {
            unsigned stem = stem_of(state, &word, known);
            unsigned concept = kinds & WORD ? known->word : stem;
            asked |= UINT64_C(1) << concept | UINT64_C(1) << stem;
            if (place < 2) opening[place] = concept;
        } else if (acts && !(asked & state->actions))
            return acts; /* the end of a pasted letter */
        if (kinds & WORD) mentioned |= UINT64_C(1) << known->word;
        if (kinds & LANGUAGE) { /* only where its name stands first */
            uint64_t *names = &seen[known->language / 64], bit = UINT64_C(1)
                                                                 << known->language % 64;
            names_language = names_language || (is_after_to && !(*names & bit));
            *names |= bit;
        }
        is_after_to = kinds & TO;
        place++;
    } while (next_word(state, &part, &word));
    if (acts && !(asked & state->actions)) return acts;
    asked &= ~(UINT64_C(1) << state->none);
    found->said[MENTIONS] |= (mentioned | asked) & ~state->weak;
    found->said[ASKS] |= asked;
    found->said[FIRST] |= UINT64_C(1) << opening[0];
    if (place > 1) found->said[SECOND] |= UINT64_C(1) << opening[1];
    if (names_language) note(found, TO_LANGUAGE);
    return asked & state->actions;
}

static void word_signals(const State *state, const Split *parts, Found *found) {
    bool acts = hear(state, parts->before, false, found);
    hear(state, parts->after, acts, found);
    if (!found->said[FIRST]) note(found, NO_ASK);
}

/* ---- what else the text has ------------------------------------------------------------------- */

/* Whether a text has one of some marks, which in a text whose case is no matter are in lower case. */
static inline bool has_any(const Marks *marks, Span text, bool lowers) {
#define SPELT(place) (lowers ? Py_TOLOWER(text.at[place]) : text.at[place])
    for (Py_ssize_t begin = 0; begin + 1 < text.size; begin++) {
        unsigned maybe = marks->first[SPELT(begin)];
        if (!maybe) continue;
        maybe &= marks->second[SPELT(begin + 1)];
        for (; maybe; maybe &= maybe - 1) {
            Span mark = marks->each[__builtin_ctz(maybe)];
            if (mark.size > text.size - begin) continue;
            Py_ssize_t same = 2;
            while (same < mark.size && SPELT(begin + same) == mark.at[same]) same++;
            if (same == mark.size) return true;
        }
    }
    return false;
#undef SPELT
}

static Py_ssize_t count(Span text, Byte one) {
    Py_ssize_t found = 0;
    for (Py_ssize_t place = 0; place < text.size; place++) found += text.at[place] == one;
    return found;
}

static bool is_unfinished(const State *state, Span code) {
    Span tail = rstrip(tail_of(code, 600), is_space);
    if (count(tail, '{') > count(tail, '}')) return true;
    for (Py_ssize_t place = 0; place < state->unfinished_ends.size; place++) {
        Span mark = state->unfinished_ends.each[place];
        if (mark.size <= tail.size &&
            is_at(tail.at + tail.size - mark.size, (const char *)mark.at, mark.size))
            return true;
    }
    return false;
}

static void text_signals(const State *state, Span text, const Split *parts, bool is_first,
                         Found *found) {
    Span before = parts->before, after = parts->after;
    Py_ssize_t num_chars = before.size + after.size;
    while (found->length < state->num_ask_sizes && state->ask_sizes[found->length] < num_chars)
        found->length++;
    if (has_byte(tail_of(before, 2), '?') || has_byte(tail_of(after, 2), '?') || ends_in(text, '?'))
        note(found, ENDS_IN_QUESTION);
    if (has_byte(before, '`') || has_byte(after, '`') || HAS(before, "()"))
        note(found, CODE_IN_ASK);
    Byte joined[2 * MOST_AT_ENDS];
    Span ends = text;
    if (text.size > 2 * state->end_chars) {
        size_t size = (size_t)state->end_chars;
        memcpy(joined, text.at, size);
        memcpy(joined + size, text.at + text.size - size, size);
        ends = (Span){joined, 2 * state->end_chars};
    }
    if ((has_byte(ends, '<') && has_any(&state->fill_marks, ends, false)) || HAS(ends, "[SUFFIX]"))
        note(found, FILL_IN_THE_MIDDLE);
    if (HAS(ends, "@@ ") || HAS(ends, "--- a/")) note(found, DIFF);
    if (!num_chars && is_unfinished(state, parts->material)) note(found, UNFINISHED_CODE);
    if ((HAS(before, "file") || HAS(after, "file")) &&
        (has_any(&state->new_file, before, true) || has_any(&state->new_file, after, true)))
        note(found, NEW_FILE);
    if (is_first && has_any(&state->reading_marks, head_of(text, state->reading_chars), false))
        note(found, READ_ONLY);
}

/* ---- a look ----------------------------------------------------------------------------------- */

/* What is read of a text: itself, or a copy where it must be changed. */
static Span to_read(const State *state, Span text, Byte *copy) {
    Span read = text;
    if (text.size > state->look_chars) {
        Py_ssize_t half = state->look_chars / 2;
        memcpy(copy, text.at, (size_t)half);
        copy[half] = '\n';
        memcpy(copy + half + 1, text.at + text.size - half, (size_t)half);
        read = (Span){copy, 2 * half + 1};
    }
    if (!has_byte(read, '\r')) return read;
    Py_ssize_t size = 0;
    for (Py_ssize_t place = 0; place < read.size; place++)
        if (read.at[place] != '\r' || place + 1 == read.size || read.at[place + 1] != '\n')
            copy[size++] = read.at[place];
    return (Span){copy, size};
}

static PyObject *string_of(Span span, Span text, PyObject *whole) {
    if (span.at == text.at && span.size == text.size) return Py_NewRef(whole);
    PyObject *string = PyUnicode_New(span.size, 127);
    if (string && span.size) memcpy(PyUnicode_1BYTE_DATA(string), span.at, (size_t)span.size);
    return string;
}

static int add_each(PyObject *set, uint64_t bits, PyObject *const *names) {
    for (; bits; bits &= bits - 1)
        if (PySet_Add(set, names[__builtin_ctzll(bits)]) < 0) return -1;
    return 0;
}

static PyObject *names_of(const State *state, const Found *found) {
    PyObject *names = PyFrozenSet_New(NULL); /* ours alone yet, and so it may be added to */
    if (!names) return NULL;
    int failed = add_each(names, found->facts, state->of_fact);
    failed = failed || PySet_Add(names, state->of_length[found->length]);
    for (int saying = 0; !failed && saying < NUM_SAYINGS; saying++)
        failed = add_each(names, found->said[saying], state->of_concept[saying]);
    if (failed) Py_CLEAR(names);
    return names;
}

static PyObject *look(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    const State *state = PyModule_GetState(module);
    if (num_args != 2) {
        PyErr_Format(PyExc_TypeError, "look takes 2 arguments, not %zd", num_args);
        return NULL;
    }
    if (!state->law) {
        PyErr_SetString(PyExc_RuntimeError, "look was not configured");
        return NULL;
    }
    PyObject *whole = args[0];
    if (!PyUnicode_CheckExact(whole) || !PyUnicode_IS_COMPACT_ASCII(whole))
        return PyObject_Vectorcall(state->law, args, 2, NULL);
    int is_first = PyObject_IsTrue(args[1]);
    if (is_first < 0) return NULL;

    Byte copy[MOST_LOOKED_AT + 1];
    Span text = {PyUnicode_1BYTE_DATA(whole), PyUnicode_GET_LENGTH(whole)};
    Split parts = split(state, to_read(state, text, copy));
    Found found = {0};
    word_signals(state, &parts, &found);
    text_signals(state, text, &parts, is_first, &found);

    PyObject *seen = PyTuple_New(4);
    if (!seen) return NULL;
    PyTuple_SET_ITEM(seen, 0, string_of(parts.before, text, whole));
    PyTuple_SET_ITEM(seen, 1, string_of(parts.after, text, whole));
    PyTuple_SET_ITEM(seen, 2, PyBool_FromLong(parts.is_code));
    PyTuple_SET_ITEM(seen, 3, names_of(state, &found));
    for (Py_ssize_t place = 0; place < 4; place++)
        if (!PyTuple_GET_ITEM(seen, place)) {
            Py_DECREF(seen);
            return NULL;
        }
    return seen;
}

/* ---- the tables, read once -------------------------------------------------------------------- */

static int refuse(const char *name) {
    PyErr_Format(PyExc_ValueError, "look was not written for such a table: %s", name);
    return -1;
}

static int read_number(PyObject *tables, const char *name, Py_ssize_t most, Py_ssize_t *number) {
    PyObject *value = PyMapping_GetItemString(tables, name);
    if (!value) return -1;
    *number = PyLong_AsSsize_t(value);
    Py_DECREF(value);
    if (*number == -1 && PyErr_Occurred()) return -1;
    return *number < 1 || *number > most ? refuse(name) : 0;
}

static int read_share(PyObject *tables, const char *name, double *share) {
    PyObject *value = PyMapping_GetItemString(tables, name);
    if (!value) return -1;
    *share = PyFloat_AsDouble(value);
    Py_DECREF(value);
    return *share == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* A table as a tuple of strings that are not empty; of a mapping its items, which are not looked at. */
static PyObject *read_tuple(PyObject *tables, const char *name, bool is_mapping) {
    PyObject *value = PyMapping_GetItemString(tables, name);
    if (!value) return NULL;
    PyObject *items = is_mapping ? PyMapping_Items(value) : Py_NewRef(value);
    Py_DECREF(value);
    PyObject *tuple = items ? PySequence_Tuple(items) : NULL;
    Py_XDECREF(items);
    return tuple;
}

static bool is_plain(PyObject *text) {
    return PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text) &&
           PyUnicode_GET_LENGTH(text) > 0;
}

static int read_marks(PyObject *tables, const char *name, Marks *marks) {
    marks->all = read_tuple(tables, name, false);
    if (!marks->all) return -1;
    if (PyTuple_GET_SIZE(marks->all) > MOST_MARKS) return refuse(name);
    for (; marks->size < PyTuple_GET_SIZE(marks->all); marks->size++) {
        PyObject *text = PyTuple_GET_ITEM(marks->all, marks->size);
        if (!is_plain(text)) return refuse(name);
        Span mark = {PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text)};
        marks->each[marks->size] = mark;
        if (mark.size > 1) {
            marks->first[mark.at[0]] |= (uint16_t)(1u << marks->size);
            marks->second[mark.at[1]] |= (uint16_t)(1u << marks->size);
        }
    }
    return 0;
}

/* The same of marks that are looked for anywhere, which are longer. */
static int read_long_marks(PyObject *tables, const char *name, Marks *marks) {
    if (read_marks(tables, name, marks)) return -1;
    for (Py_ssize_t place = 0; place < marks->size; place++)
        if (marks->each[place].size < 2) return refuse(name);
    return 0;
}

/* A flag for each character of a string, or of bytes. */
static int read_bytes(PyObject *tables, const char *name, Byte *flags) {
    PyObject *value = PyMapping_GetItemString(tables, name);
    if (!value) return -1;
    const char *bytes = NULL;
    if (PyBytes_CheckExact(value))
        bytes = PyBytes_AS_STRING(value);
    else if (is_plain(value))
        bytes = (const char *)PyUnicode_1BYTE_DATA(value);
    for (const char *at = bytes; at && *at; at++) flags[(Byte)*at] = 1;
    Py_DECREF(value);
    return bytes ? 0 : refuse(name);
}

/* `to_words` says what a byte is in words: lower case, or a blank. White space is none of a word, and
 * a NUL, which is one character more, is told from that by a byte that no ASCII text has. */
static int read_word_bytes(PyObject *tables, State *state) {
    PyObject *value = PyMapping_GetItemString(tables, "to_words");
    if (!value) return -1;
    bool fits = PyBytes_CheckExact(value) && PyBytes_GET_SIZE(value) == 256;
    for (int byte = 0; fits && byte < 128; byte++) {
        Byte one = (Byte)PyBytes_AS_STRING(value)[byte];
        state->word_byte[byte] = is_space(one) ? 0 : one ? one : 0xff;
        if (is_space((Byte)byte) ? one != byte : is_space(one) && one != ' ')
            fits = false; /* `next_word` takes a mark for a blank, and white space for itself */
    }
    Py_DECREF(value);
    return fits ? 0 : refuse("to_words");
}

static PyObject *interned(PyObject *name) {
    if (name) /* as the weights' names are, which are looked up by them */
        PyUnicode_InternInPlace(&name);
    return name;
}

static int read_concepts(PyObject *tables, PyObject *concepts, State *state) {
    state->none = PyTuple_GET_SIZE(concepts);
    if (state->none > MOST_CONCEPTS) return refuse("concepts");
    for (int saying = 0; saying < NUM_SAYINGS; saying++)
        for (Py_ssize_t place = 0; place <= state->none; place++) {
            PyObject *concept = place < state->none ? PyTuple_GET_ITEM(concepts, place) : Py_None;
            PyObject *name = PyUnicode_FromFormat("%s:%S", SAYINGS[saying], concept);
            if (!(state->of_concept[saying][place] = interned(name))) return -1;
        }
    for (int fact = 0; fact < NUM_FACTS; fact++)
        if (!(state->of_fact[fact] = interned(PyUnicode_FromString(FACTS[fact])))) return -1;
    PyObject *sizes = read_tuple(tables, "ask_sizes", false);
    if (!sizes) return -1;
    state->num_ask_sizes = PyTuple_GET_SIZE(sizes);
    int failed = state->num_ask_sizes > MOST_SIZES ? refuse("ask_sizes") : 0;
    for (Py_ssize_t size = 0; !failed && size <= state->num_ask_sizes; size++) {
        state->of_length[size] = interned(PyUnicode_FromFormat("ask-length:%zd", size));
        failed = state->of_length[size] ? 0 : -1;
        if (!failed && size < state->num_ask_sizes) {
            state->ask_sizes[size] = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, size));
            failed = state->ask_sizes[size] == -1 && PyErr_Occurred() ? -1 : 0;
        }
    }
    Py_DECREF(sizes);
    return failed;
}

static int read_bits(PyObject *tables, const char *name, PyObject *concepts, uint64_t *bits) {
    PyObject *some = read_tuple(tables, name, false);
    if (!some) return -1;
    int failed = 0;
    for (Py_ssize_t item = 0; !failed && item < PyTuple_GET_SIZE(some); item++) {
        Py_ssize_t place = PySequence_Index(concepts, PyTuple_GET_ITEM(some, item));
        if (place < 0)
            failed = -1;
        else
            *bits |= UINT64_C(1) << place;
    }
    Py_DECREF(some);
    return failed;
}

/* The entry of a string, a new one if there is none; NULL, without an error, if no text can have it. */
static Known *entry_of(State *state, PyObject *text) {
    if (!is_plain(text)) return NULL;
    Span spelt = {PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text)};
    for (Py_ssize_t place = 0; place < spelt.size; place++)
        if (state->word_byte[spelt.at[place]] != spelt.at[place]) /* a mark or a capital */
            return NULL;
    uint32_t hash = hash_of(state, spelt);
    Known *known = (Known *)known_of(state, spelt, hash);
    if (known) return known;
    size_t place = slot_of(state, hash);
    while (state->slots[place].number) place = (place + 1) & state->last_slot;
    known = &state->known[state->num_known++];
    *known = (Known){.text = Py_NewRef(text), .at = spelt.at, .size = spelt.size};
    state->slots[place] = (Slot){(uint16_t)state->num_known, (uint16_t)hash};
    return known;
}

static int learn(State *state, PyObject *item, unsigned kind, PyObject *concepts) {
    bool has_concept = kind & (WORD | STEM);
    if (has_concept && !(PyTuple_CheckExact(item) && PyTuple_GET_SIZE(item) == 2))
        return refuse("words");
    Known *known = entry_of(state, has_concept ? PyTuple_GET_ITEM(item, 0) : item);
    if (!known) return 0;
    known->kinds |= (uint8_t)kind;
    if (kind == OPENER && known->size > LONGEST_OPENER) return refuse("openers");
    if (kind == LANGUAGE) {
        if (state->num_languages == MOST_LANGUAGES) return refuse("languages");
        known->language = (uint8_t)state->num_languages++;
    }
    if (!has_concept) return 0;
    Py_ssize_t place = PySequence_Index(concepts, PyTuple_GET_ITEM(item, 1));
    if (place < 0) return -1;
    *(kind == WORD ? &known->word : &known->stem) = (uint8_t)place;
    return 0;
}

static const struct {
    const char *name;
    unsigned kind;
} LISTS[] = {
    {"words", WORD}, {"stems", STEM}, {"languages", LANGUAGE}, {"to", TO}, {"openers", OPENER},
};
enum { NUM_LISTS = sizeof LISTS / sizeof LISTS[0] };

static int read_lists(PyObject *tables, PyObject *concepts, State *state) {
    PyObject *lists[NUM_LISTS] = {0};
    size_t most = 0, num_slots = 64;
    int failed = 0;
    for (int list = 0; !failed && list < NUM_LISTS; list++) {
        lists[list] = read_tuple(tables, LISTS[list].name, LISTS[list].kind & (WORD | STEM));
        failed = lists[list] ? 0 : -1;
        most += failed ? 0 : (size_t)PyTuple_GET_SIZE(lists[list]);
    }
    if (!failed && most > UINT16_MAX) failed = refuse("words");
    while (num_slots < 2 * most) num_slots *= 2;
    if (!failed) {
        state->last_slot = num_slots - 1;
        state->known = PyMem_Calloc(most + 1, sizeof(Known));
        state->slots = PyMem_Calloc(num_slots, sizeof(Slot));
        if (!state->known || !state->slots) {
            PyErr_NoMemory();
            failed = -1;
        }
    }
    for (int list = 0; list < NUM_LISTS; list++) {
        for (Py_ssize_t item = 0; !failed && item < PyTuple_GET_SIZE(lists[list]); item++)
            failed = learn(state, PyTuple_GET_ITEM(lists[list], item), LISTS[list].kind, concepts);
        Py_XDECREF(lists[list]);
    }
    return failed;
}

static int read_numbers(PyObject *tables, State *state) {
    const Py_ssize_t any = PY_SSIZE_T_MAX / 8;
    const struct {
        const char *name;
        Py_ssize_t most, *number;
    } numbers[] = {
        {"stem_chars", any, &state->stem_chars},
        {"opening_words", any, &state->opening_words},
        {"end_chars", MOST_AT_ENDS, &state->end_chars},
        {"reading_chars", any, &state->reading_chars},
        {"look_chars", MOST_LOOKED_AT, &state->look_chars},
        {"ask_chars", any, &state->ask_chars},
        {"sample_chars", any, &state->sample_chars},
        {"short_sample_chars", any, &state->short_sample_chars},
        {"paragraph_chars", any, &state->paragraph_chars},
        {"short_paragraph_chars", any, &state->short_paragraph_chars},
        {"max_lines", any, &state->max_lines},
    };
    for (size_t place = 0; place < sizeof numbers / sizeof numbers[0]; place++)
        if (read_number(tables, numbers[place].name, numbers[place].most, numbers[place].number))
            return -1;
    return 0;
}

static int read_tables(PyObject *tables, PyObject *concepts, State *state) {
    return read_numbers(tables, state) || read_word_bytes(tables, state) ||
           read_concepts(tables, concepts, state) || read_lists(tables, concepts, state) ||
           read_bits(tables, "weak", concepts, &state->weak) ||
           read_bits(tables, "actions", concepts, &state->actions) ||
           read_marks(tables, "unfinished_ends", &state->unfinished_ends) ||
           read_long_marks(tables, "new_file", &state->new_file) ||
           read_long_marks(tables, "fill_marks", &state->fill_marks) ||
           read_long_marks(tables, "reading_marks", &state->reading_marks) ||
           read_bytes(tables, "symbols", state->is_symbol) ||
           read_bytes(tables, "code_start", state->is_code_start) ||
           read_bytes(tables, "open_ends", state->is_open_end) ||
           read_share(tables, "code_share", &state->code_share) ||
           read_share(tables, "line_share", &state->line_share) ||
           read_share(tables, "long_line_share", &state->long_line_share);
}

static void forget(State *state) {
    for (size_t place = 0; place < state->num_known; place++) Py_CLEAR(state->known[place].text);
    PyMem_Free(state->known);
    PyMem_Free(state->slots);
    for (int saying = 0; saying < NUM_SAYINGS; saying++)
        for (int place = 0; place <= MOST_CONCEPTS; place++)
            Py_CLEAR(state->of_concept[saying][place]);
    for (int place = 0; place <= MOST_SIZES; place++) Py_CLEAR(state->of_length[place]);
    for (int place = 0; place < NUM_FACTS; place++) Py_CLEAR(state->of_fact[place]);
    Py_CLEAR(state->unfinished_ends.all);
    Py_CLEAR(state->new_file.all);
    Py_CLEAR(state->fill_marks.all);
    Py_CLEAR(state->reading_marks.all);
    Py_CLEAR(state->law);
    memset(state, 0, sizeof *state);
}

static PyObject *configure(PyObject *module, PyObject *const *args, Py_ssize_t num_args) {
    State *state = PyModule_GetState(module);
    if (num_args != 2) {
        PyErr_Format(PyExc_TypeError, "configure takes 2 arguments, not %zd", num_args);
        return NULL;
    }
    if (state->law) { /* a look may be under way */
        PyErr_SetString(PyExc_RuntimeError, "look is configured already");
        return NULL;
    }
    PyObject *concepts = read_tuple(args[1], "concepts", false);
    if (!concepts) return NULL;
    int failed = read_tables(args[1], concepts, state);
    Py_DECREF(concepts);
    if (failed) {
        forget(state);
        return NULL;
    }
    state->law = Py_NewRef(args[0]);
    Py_RETURN_NONE;
}

/* ---- the module ------------------------------------------------------------------------------- */

static int traverse(PyObject *module, visitproc visit, void *arg) {
    State *state = PyModule_GetState(module);
    Py_VISIT(state->law);
    return 0;
}

static int clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->law);
    return 0;
}

static void release(void *module) { forget(PyModule_GetState(module)); }

static PyMethodDef methods[] = {
    {"look", (PyCFunction)(void (*)(void))look, METH_FASTCALL, "The same as core/look.py's."},
    {"configure", (PyCFunction)(void (*)(void))configure, METH_FASTCALL,
     "Once, before the first look: the law, and the tables that it goes by."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "look",
    "The compiled twin of core/look.py.",
    sizeof(State),
    methods,
    slots,
    traverse,
    clear,
    release,
};

PyMODINIT_FUNC PyInit_look(void) { return PyModuleDef_Init(&definition); }
