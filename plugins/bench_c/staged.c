/* Steps in order: trees and columns, then a gate that selects the next step. */

enum { LAST, MIN, AND, ADD };        /* combine */
enum { ALWAYS, SCORE, CLASS, LARGEST }; /* gate */
enum { IDENTITY, EXP, PROBABILITY, SIGMOID }; /* link */
enum { REJECT = BENCH_CAP + 1 };     /* stopped */

static int within(const struct row *r, double splits, int trees)
{
    return r->price + (SPLIT * splits + TREE * trees) <= r->cap;
}

static int open_now(const struct row *r, int cell)
{
    for (int i = needs_of[cell]; i < needs_of[cell + 1]; i++)
        if (!r->bought[needs[i]])
            return 0;
    return !r->have[2 * cell];
}

/* Request the cells of wanted features and of all features that become readable with them. */
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

/* Returns 0 without a purchase if the cap forbids it; splits and trees are those paid by then. A
   metered sensor is bought while money is left. */
static int buy(struct row *r, const int *wanted, int count, double splits, int trees)
{
    unsigned char before[SENSORS];
    double paid = r->price;
    int unknown = 0;
    if (r->capped)
        memcpy(before, r->bought, sizeof before);
    for (int k = 0; k < count; k++)
        for (int i = needs_of[wanted[k]]; i < needs_of[wanted[k] + 1]; i++)
            if (!r->bought[needs[i]]) {
                r->bought[needs[i]] = (unsigned char)(1 + METERED(needs[i]));
                unknown |= METERED(needs[i]);
            }
    if (r->capped) {
        r->price = price_of(r);
        if (!within(r, splits, trees) || (unknown && r->price + (SPLIT * splits + TREE * trees) >= r->cap)) {
            memcpy(r->bought, before, sizeof before);
            r->price = paid;
            return 0;
        }
    }
    ask(r, wanted, count);
    for (int s = 0; unknown && s < SENSORS; s++)
        r->bought[s] = r->bought[s] != 0;
    if (unknown && r->capped)
        r->price = price_of(r);
    return 1;
}

static int add_trees(struct row *r, const struct step *s)
{
    for (const struct use *u = uses + s->first_use; u < uses + s->last_use; u++) {
        size_t at = u->root;
        for (int level = u->levels; level > 0; level--) {
            const struct node n = nodes[at];
            double splits = r->sums.splits + leaves[at + n.below].path;
            if (r->capped && u->billed && n.below && !within(r, splits, r->sums.trees + 1))
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
        r->sums.own[c->output] += c->weight * scaled(r->values[c->cell], c->mean, c->factor);
    }
    return 1;
}

/* A metered price is not known yet. */
static void add_prices(struct row *r, const struct step *s)
{
    for (int i = s->first_price; i < s->last_price; i++) {
        const struct weighted_price *w = weighted_prices + i;
#if BY_ROW
        double amount = METERED(w->sensor) ? prices[w->sensor] : price(r, w->sensor);
#else
        double amount = w->mean;
#endif
        r->sums.own[w->output] += w->weight * amount;
    }
}

/* Gaussian kernels over the support vectors, a tile at a time; the bias comes last. */
static void add_kernel(struct row *r, const struct step *s)
{
    const struct support *v = supports + s->kernel;
    double z[FEATURES] = {0.0}, total[BENCH_OUTPUTS] = {0.0};
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
    if (s->gate == LARGEST) {
        int best = 0;
        for (int k = 1; k < BENCH_OUTPUTS; k++)
            best = r->score[k] > r->score[best] ? k : best;
        return best == s->value;
    }
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

/* Walk through all steps; return the last one that counts, -1 if the cap allows none. */
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
        add_prices(r, s);
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
#if BY_ROW
    memset(r->priced, 0, sizeof r->priced);
#endif
#if ENCODED
    memset(r->known, 0, sizeof r->known);
#endif
    for (int k = 0; k < BENCH_OUTPUTS; k++)
        r->sums.own[k] = r->score[k] = r->stop[k] = 0.0;
    r->cells[2 * READ] = 0;
    r->have[2 * READ] = 1;
    r->price = r->sums.splits = 0.0;
    r->cap = source->cap != 0 && !(source->cap > CAP) ? source->cap : CAP;
    r->capped = !(r->cap >= INFINITY); /* so NaN buys nothing */
    if (r->cap < LEAST)
        r->cap = -1.0; /* nor what costs less than any answer */
    r->sums.trees = r->stopped = 0;
}

/* Take over all cells of the row. */
static void take_all(struct row *r)
{
    const float *cells = r->source->cells;
    int32_t bits[FEATURES];
    for (int c = 0; c < READ; c++)
        r->values[c] = feature(cells, features[c]);
    memcpy(bits, r->values, READ * sizeof *bits);
    for (int c = 0; c < READ; c++)
        put(r, c, bits[c]);
    memset(r->have, 1, sizeof r->have);
}

/* Pay for the cells that were read. */
static void pay_all(struct row *r)
{
    for (int c = 0; c < READ; c++)
        for (int i = needs_of[c]; i < needs_of[c + 1]; i++)
            r->bought[needs[i]] |= (r->have[2 * c] | r->have[2 * c + 1]) >> 1;
}

int bench_scores(const struct bench_source *source, double *scores, double *spent)
{
    struct row r = {.cap = 0.0}; /* all of it, or compilers warn of models without columns */
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
        *spent = price_of(&r) + (SPLIT * r.sums.splits + TREE * r.sums.trees);
    return r.stopped == REJECT ? BENCH_GATE : r.stopped;
}
