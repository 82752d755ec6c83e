/* One row through a model, see bench_model.h: C99, without -ffast-math, which loses missing values. */

#include "bench_model.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "-ffast-math loses missing values: compile without it"
#endif

enum { LAST, MIN, AND, ADD };        /* combine */
enum { ALWAYS, SCORE, CLASS };       /* gate */
enum { IDENTITY, EXP, PROBABILITY, SIGMOID }; /* link */
enum { REJECT = BENCH_CAP + 1 };     /* stopped */

/* constants */

struct node { int32_t key; NARROW cell, below; };
struct leaf { double value, path; };
struct use { size_t root; int levels, output, billed; };
struct column { int cell, output, scaled; double weight, mean, factor; };
struct step {
    int first_use, last_use, first_column, last_column, first_read, last_read, carry, combine, gate,
        then, otherwise, stop_then, stop_otherwise, kernel;
    double value, bias[BENCH_OUTPUTS];
};
struct finish { int given, link, onward; double rounds, slope, intercept, base[BENCH_OUTPUTS]; };
struct support {
    int places, count, tile, groups;
    const int *cells, *start;
    const double *mean, *factor, *gamma, *vectors, *coefficients;
};

/* tables */

struct sums {
    double own[BENCH_OUTPUTS], splits;
    int trees;
};

struct row {
    const struct bench_source *source;
    float values[FEATURES];
    int32_t cells[2 * FEATURES + 1];      /* as keys, two of each: where missing, the least and the largest */
    unsigned char have[2 * FEATURES + 1]; /* 0 not there, 1 there, 2 read; the last is for leaves */
    unsigned char bought[SENSORS];
    double score[BENCH_OUTPUTS], stop[BENCH_OUTPUTS];
    double price, cap;
    struct sums sums;
    int stopped, capped;
};

/* In four sums that do not wait for each other. */
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

static int within(const struct row *r, double splits, int trees)
{
    return r->price + (SPLIT * splits + TREE * trees) <= r->cap;
}

static void acquire(struct row *r, int count, const int *asked, float *values)
{
    if (r->source->acquire)
        r->source->acquire(r->source->context, count, asked, values);
    else
        for (int k = 0; k < count; k++)
            values[k] = r->source->cells[asked[k]];
}

/* A value of these bits as a key: an integer in the order of the floats; -0.0 is 0.0. */
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

static int open_now(const struct row *r, int cell)
{
    for (int i = needs_of[cell]; i < needs_of[cell + 1]; i++)
        if (!r->bought[needs[i]])
            return 0;
    return !r->have[2 * cell];
}

/* Ask for the cells of wanted features and of all that can be read with them. */
static void ask(struct row *r, const int *wanted, int count)
{
    int cell[FEATURES], asked[FEATURES], found = 0;
    float values[FEATURES];
    for (int k = 0; k < count; k++)
        for (int i = mates_of[wanted[k]]; i < mates_of[wanted[k] + 1]; i++)
            if (open_now(r, mates[i])) {
                int at = found++;
                for (; at > 0 && cell[at - 1] > mates[i]; at--)
                    cell[at] = cell[at - 1];
                cell[at] = mates[i];
                r->have[2 * mates[i]] = r->have[2 * mates[i] + 1] = 1;
            }
    if (found == 0)
        return;
    for (int k = 0; k < found; k++) {
        asked[k] = features[cell[k]];
        values[k] = NAN;
    }
    acquire(r, found, asked, values);
    for (int k = 0; k < found; k++)
        take(r, cell[k], values[k]);
}

/* 0, and nothing is bought, where the cap forbids it; splits and trees are those paid by then. */
static int buy(struct row *r, const int *wanted, int count, double splits, int trees)
{
    unsigned char before[SENSORS];
    double price = r->price;
    if (r->capped)
        memcpy(before, r->bought, sizeof before);
    for (int k = 0; k < count; k++)
        for (int i = needs_of[wanted[k]]; i < needs_of[wanted[k] + 1]; i++)
            r->bought[needs[i]] = 1;
    if (r->capped) {
        r->price = price_of(r->bought);
        if (!within(r, splits, trees)) {
            memcpy(r->bought, before, sizeof before);
            r->price = price;
            return 0;
        }
    }
    ask(r, wanted, count);
    return 1;
}

static void add_leaf(struct sums *sums, const struct use *u, const struct leaf *leaf)
{
    if (u->output >= 0)
        sums->own[u->output] += leaf->value;
    else
        for (int k = 0; k < BENCH_OUTPUTS; k++)
            sums->own[k] += vectors[(int)leaf->value][k];
    if (u->billed) {
        sums->trees++;
        sums->splits += leaf->path;
    }
}

static int add_trees(struct row *r, const struct step *s)
{
    for (const struct use *u = uses + s->first_use; u < uses + s->last_use; u++) {
        size_t at = u->root;
        for (int level = u->levels; level > 0; level--) {
            const struct node n = nodes[at];
            double splits = r->sums.splits + leaves[at + n.below].path;
            if (r->capped && u->billed && !within(r, splits, r->sums.trees + 1))
                return 0;
            if (!r->have[n.cell]) {
                int cell = (int)(n.cell / 2);
                if (!buy(r, &cell, 1, splits, r->sums.trees + u->billed))
                    return 0;
            }
            at += (size_t)n.below + (n.key < r->cells[n.cell]);
        }
        add_leaf(&r->sums, u, leaves + at);
    }
    return 1;
}

/* The child that a row goes to; a leaf leads to itself. */
static size_t down(struct row *r, size_t at)
{
    size_t cell = nodes[at].cell;
    r->have[cell] = 2;
    return at + nodes[at].below + (nodes[at].key < r->cells[cell]);
}

/* The same where all cells are at hand and there is no cap: what was read is paid for later. Four
   trees side by side keep the processor busy. */
static void read_trees(struct row *r, const struct step *s)
{
    const struct use *u = uses + s->first_use, *end = uses + s->last_use;
    struct sums sums = r->sums; /* a copy, which what is written to the row cannot change */
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

static double scaled(double x, double mean, double factor)
{
    return isfinite(x) ? (x - mean) * factor : 0.0;
}

static int add_columns(struct row *r, const struct step *s)
{
    int all = 1;
    for (int i = s->first_read; i < s->last_read; i++)
        all = all && r->have[2 * reads[i] + 1];
    if (!all && !buy(r, reads + s->first_read, s->last_read - s->first_read, r->sums.splits, r->sums.trees))
        return 0;
    for (int i = s->first_read; i < s->last_read; i++)
        r->have[2 * reads[i] + 1] = 2;
    for (int i = s->first_column; i < s->last_column; i++) {
        const struct column *c = columns + i;
        double x = r->values[c->cell];
        if (c->scaled)
            r->sums.own[c->output] += c->weight * scaled(x, c->mean, c->factor);
        else if (!isnan(x))
            r->sums.own[c->output] += c->weight * x;
    }
    return 1;
}

/* Gaussian kernels over the support vectors, a tile at a time; the bias comes last. */
static void add_kernel(struct row *r, const struct step *s)
{
    const struct support *v = supports + s->kernel;
    double z[FEATURES], total[BENCH_OUTPUTS] = {0.0};
    for (int j = 0; j < v->places; j++)
        z[j] = scaled(r->values[v->cells[j]], v->mean[j], v->factor[j]);
    for (int first = 0; first < v->count; first += v->tile) {
        double part[BENCH_OUTPUTS] = {0.0};
        for (int i = first; i < first + v->tile && i < v->count; i++) {
            double sum = 0.0;
            for (int g = 0; g < v->groups; g++) {
                double distance = 0.0;
                for (int j = v->start[g]; j < v->start[g + 1]; j++) {
                    double off = z[j] - v->vectors[j * v->count + i];
                    distance += off * off;
                }
                sum += exp(-v->gamma[g] * distance);
            }
            for (int k = 0; k < BENCH_OUTPUTS; k++)
                part[k] += v->coefficients[k * v->count + i] * sum;
        }
        for (int k = 0; k < BENCH_OUTPUTS; k++)
            total[k] += part[k];
    }
    for (int k = 0; k < BENCH_OUTPUTS; k++)
        r->sums.own[k] = total[k] + s->bias[k];
}

static double log_add(double a, double b)
{
    double off = a - b;
    if (a == b)
        return a + log(2.0);
    return off > 0 ? a + log1p(exp(-off)) : b + log1p(exp(off));
}

static void combine(struct row *r, int how)
{
    for (int k = 0; k < BENCH_OUTPUTS; k++) {
        double a = r->score[k], b = r->sums.own[k];
        if (how == MIN)
            r->score[k] = a < b || isnan(a) ? a : b;
        else if (how == ADD)
            r->score[k] = a + b;
        else if (how == AND)
            r->score[k] = -log_add(log_add(-a, -b), -a - b);
        else
            r->score[k] = b;
    }
}

static double largest_probability(const double *score)
{
    double best = score[0], others = 0.0;
    if (BENCH_OUTPUTS == 1)
        return 1.0 / (1.0 + exp(-fabs(score[0])));
    for (int k = 1; k < BENCH_OUTPUTS; k++)
        best = score[k] > best ? score[k] : best;
    for (int k = 0; k < BENCH_OUTPUTS; k++)
        others += exp(score[k] - best);
    return 1.0 / (1.0 + (others - 1.0));
}

static int passes(const struct row *r, const struct step *s)
{
    if (s->gate == SCORE)
        return r->score[0] >= s->value;
    return s->gate == ALWAYS || largest_probability(r->score) <= s->value;
}

static void finish(double *score, const struct finish *f)
{
    for (int k = 0; f->given && k < BENCH_OUTPUTS; k++) {
        double raw = f->base[k] + score[k] / f->rounds;
        if (f->link == EXP)
            raw = exp(raw < 700.0 ? raw : 700.0);
        if (f->link == PROBABILITY) {
            raw = raw < 1e-6 ? 1e-6 : raw > 1 - 1e-6 ? 1 - 1e-6 : raw;
            raw = BENCH_OUTPUTS == 1 ? log(raw) - log(1.0 - raw) : log(raw);
        }
        if (f->link == SIGMOID)
            raw = raw < 0 ? raw - log1p(exp(raw)) : -log1p(exp(-raw));
        score[k] = f->slope * raw + f->intercept;
    }
}

/* Through all steps; the last one that counts, -1 where the cap allows nothing. */
static int run(struct row *r, int at_hand)
{
    int at = 0, last = -1, stop = -1;
    while (at >= 0) {
        const struct step *s = steps + at;
        for (int k = 0; k < BENCH_OUTPUTS; k++)
            r->sums.own[k] = (s->carry ? r->sums.own[k] : 0.0) + s->bias[k];
        if (at_hand)
            read_trees(r, s);
        if ((!at_hand && !add_trees(r, s)) || !add_columns(r, s)) {
            memcpy(r->score, r->stop, sizeof r->stop);
            r->stopped = BENCH_CAP;
            return stop;
        }
        if (s->kernel >= 0)
            add_kernel(r, s);
        combine(r, s->combine);
        last = at;
        int on = passes(r, s);
        at = on ? s->then : s->otherwise;
        if (on ? s->stop_then : s->stop_otherwise) {
            stop = last;
            memcpy(r->stop, r->score, sizeof r->stop);
        }
        r->stopped = at == -2 ? REJECT : on ? BENCH_END : BENCH_GATE;
    }
    return last;
}

static void begin(struct row *r, const struct bench_source *source)
{
    r->source = source;
    memset(r->have, 0, sizeof r->have);
    memset(r->bought, 0, sizeof r->bought);
    for (int k = 0; k < BENCH_OUTPUTS; k++)
        r->sums.own[k] = r->score[k] = r->stop[k] = 0.0;
    r->cells[2 * FEATURES] = 0;
    r->have[2 * FEATURES] = 1;
    r->price = r->sums.splits = 0.0;
    r->cap = source->cap != 0 ? source->cap : CAP;
    r->capped = !(r->cap >= INFINITY); /* so NaN buys nothing */
    r->sums.trees = r->stopped = 0;
}

/* All cells of the row. */
static void take_all(struct row *r)
{
    const float *cells = r->source->cells;
    int32_t bits[FEATURES];
    for (int c = 0; c < FEATURES; c++)
        r->values[c] = cells[features[c]];
    memcpy(bits, r->values, sizeof bits);
    for (int c = 0; c < FEATURES; c++)
        put(r, c, bits[c]);
    memset(r->have, 1, sizeof r->have);
}

/* What was read of them. */
static void pay_all(struct row *r)
{
    for (int c = 0; c < FEATURES; c++)
        for (int i = needs_of[c]; i < needs_of[c + 1]; i++)
            r->bought[needs[i]] |= (r->have[2 * c] | r->have[2 * c + 1]) >> 1;
}

int bench_scores(const struct bench_source *source, double *scores, double *spent)
{
    struct row r;
    begin(&r, source);
    int at_hand = !source->acquire && !r.capped;
    if (at_hand)
        take_all(&r);
    int last = run(&r, at_hand);
    if (at_hand)
        pay_all(&r);
    for (int k = 0; k < BENCH_OUTPUTS; k++)
        scores[k] = last < 0 ? nothing[k]
                  : r.stopped == REJECT && REJECTED_HAVE ? REJECTED
                  : r.score[k];
    if (last >= 0)
        for (const struct finish *f = &finishes[last]; f; f = f->onward ? &finishes[f->onward] : 0)
            finish(scores, f);
    if (spent)
        *spent = price_of(r.bought) + (SPLIT * r.sums.splits + TREE * r.sums.trees);
    return r.stopped == REJECT ? BENCH_GATE : r.stopped;
}

#if BENCH_OUTPUTS == 1
double bench_score(const struct bench_source *source, double *spent)
{
    double score;
    bench_scores(source, &score, spent);
    return score;
}
#endif
