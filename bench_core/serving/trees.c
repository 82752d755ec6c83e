/* One row through a model, see bench_model.h: C99, without -ffast-math, which loses missing values. */

#include "bench_model.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "-ffast-math loses missing values: compile without it"
#endif

/* constants */

struct node { int32_t key; NARROW cell, below; };
struct leaf { double value, path; };
struct use { size_t root; int levels, output, billed; };
struct column { int cell, output, scaled; double weight, mean, factor; };
struct step {
    int first_use, last_use, first_column, last_column, first_read, last_read, carry, combine, gate,
        then, otherwise, stop_then, stop_otherwise, kernel;
    double value, bias[WIDTH];
};
struct finish { int given, link, onward; double rounds, slope, intercept, base[WIDTH]; };
struct support {
    int places, count, tile, groups;
    const int *cells, *start;
    const double *mean, *factor, *gamma, *vectors, *coefficients;
};

/* tables */

struct sums {
    double own[WIDTH], splits;
    int trees;
};

struct row {
    const struct bench_source *source;
    float values[FEATURES];
    int32_t cells[2 * FEATURES + 1];      /* two keys per feature; if missing, the least and the largest */
    unsigned char have[2 * FEATURES + 1]; /* 0 unknown, 1 known, 2 read; the last is for leaves */
    unsigned char bought[SENSORS];
    double score[WIDTH], stop[WIDTH];
    double price, cap;
    struct sums sums;
    int stopped, capped;
#if ENCODED
    float codes[BENCH_FEATURES];
    unsigned char known[BENCH_FEATURES];
#endif
};

/* Four independent sums, for speed. */
static double price_of(const unsigned char *bought)
{
    double total[4] = {0.0};
    int s = 0;
    for (; s + 4 <= SENSORS; s += 4)
        for (int k = 0; k < 4; k++)
            total[k] += bought[s + k] * prices[s + k];
    for (; s < SENSORS; s++)
        total[0] += bought[s] * prices[s];
    return (total[0] + total[1]) + (total[2] + total[3]);
}

#if ENCODED
/* Features made from text. level_of: the code for which a feature is 1; -1: it is the code. */
static float feature(const float *codes, int f)
{
    float code = codes[column_of[f]];
    return level_of[f] < 0 || isnan(code) ? code : (float)(code == (float)level_of[f]);
}

static void acquire(struct row *r, int count, const int *asked, float *values)
{
    int columns[BENCH_FEATURES], found = 0;
    float codes[BENCH_FEATURES];
    const float *from = r->source->acquire ? r->codes : r->source->cells;
    for (int k = 0; k < count; k++) {
        int column = column_of[asked[k]];
        if (r->known[column])
            continue;
        r->known[column] = 1;
        codes[found] = NAN;
        columns[found++] = column;
    }
    if (r->source->acquire && found > 0)
        r->source->acquire(r->source->context, found, columns, codes);
    for (int k = 0; k < found; k++)
        r->codes[columns[k]] = codes[k];
    for (int k = 0; k < count; k++)
        values[k] = feature(from, asked[k]);
}

#if TEXTS
/* The code of a text without surrounding blanks: the first number among these. */
static float encode(const char *text, const char *const *texts, const float *codes, int count, float other)
{
    const char *end;
    if (!text)
        return NAN;
    while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        text++;
    for (end = text + strlen(text); end > text && (end[-1] == ' ' || (end[-1] >= '\t' && end[-1] <= '\r')); end--)
        ;
    for (int k = 0; k < count; k++)
        if (strlen(texts[k]) == (size_t)(end - text) && memcmp(texts[k], text, (size_t)(end - text)) == 0)
            return codes[k];
    return other;
}

#endif

/* encoders */
#else
static float feature(const float *cells, int f)
{
    return cells[f];
}

static void acquire(struct row *r, int count, const int *asked, float *values)
{
    if (r->source->acquire)
        r->source->acquire(r->source->context, count, asked, values);
    else
        for (int k = 0; k < count; k++)
            values[k] = feature(r->source->cells, asked[k]);
}
#endif

/* Convert the bits of a value to a key: an integer in the order of the floats; -0.0 is 0.0. */
static void put(struct row *r, int cell, int32_t bits)
{
    int32_t size = bits & 0x7fffffff, key = bits < 0 && size ? ~size : size;
    r->cells[2 * cell] = size > 0x7f800000 ? INT32_MIN : key;
    r->cells[2 * cell + 1] = size > 0x7f800000 ? INT32_MAX : key;
}

static void take(struct row *r, int cell, float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    r->values[cell] = value;
    put(r, cell, bits);
}

static void add_leaf(struct sums *sums, const struct use *u, const struct leaf *leaf)
{
    if (u->output >= 0)
        sums->own[u->output] += leaf->value;
    else
        for (int k = 0; k < WIDTH; k++)
            sums->own[k] += vectors[(int)leaf->value][k];
    if (u->billed) {
        sums->trees++;
        sums->splits += leaf->path;
    }
}

/* The child of a node for a row; a leaf leads to itself. */
static size_t down(struct row *r, size_t at)
{
    size_t cell = nodes[at].cell;
    r->have[cell] = 2;
    return at + nodes[at].below + (nodes[at].key < r->cells[cell]);
}

/* The same if all cells are known and there is no cap: the cells read are billed later. Four trees
   are walked in parallel to keep the processor busy. */
static void read_trees(struct row *r, const struct step *s)
{
    const struct use *u = uses + s->first_use, *end = uses + s->last_use;
    struct sums sums = r->sums; /* a copy that does not alias the row */
    for (; end - u >= 4; u += 4) {
        size_t a = u[0].root, b = u[1].root, c = u[2].root, d = u[3].root;
        int levels = u[0].levels;
        for (int k = 1; k < 4; k++)
            levels = u[k].levels > levels ? u[k].levels : levels;
        for (int level = LEVELS ? LEVELS : levels; level > 0; level--) {
            a = down(r, a);
            b = down(r, b);
            c = down(r, c);
            d = down(r, d);
        }
        add_leaf(&sums, u, leaves + a);
        add_leaf(&sums, u + 1, leaves + b);
        add_leaf(&sums, u + 2, leaves + c);
        add_leaf(&sums, u + 3, leaves + d);
    }
    for (; u < end; u++) {
        size_t at = u->root;
        for (int level = u->levels; level > 0; level--)
            at = down(r, at);
        add_leaf(&sums, u, leaves + at);
    }
    r->sums = sums;
}

#if BENCH_OUTPUTS == 1
double bench_score(const struct bench_source *source, double *spent)
{
    double score;
    bench_scores(source, &score, spent);
    return score;
}
#endif
