/* A policy: one purchase after another, chosen by trees from the purchases so far. */

struct policy {
    struct row row;
    unsigned char made[PURCHASES + 1];
    int lacking[READABLE + PURCHASES]; /* sensors that features and purchases still need */
    int open; /* purchases not made yet */
    double money, left; /* of the cap: without and with purchases */
};

/* The marginal cost of a purchase. */
static double price_after(const struct row *r, int purchase)
{
    double total = 0.0;
    for (int i = sensors_of[purchase]; i < sensors_of[purchase + 1]; i++)
        if (!r->bought[sensors[i]])
            total += weighed[sensors[i]];
    return total;
}

/* Whether the cap allows a purchase; a metered sensor is bought while money is left. */
static int affords(struct policy *p, int purchase)
{
    struct row *r = &p->row;
    double due = 0.0, slack = isinf(p->money) ? 0.0 : 2e-9 * p->money;
    int unknown = 0;
    for (int i = sensors_of[purchase]; i < sensors_of[purchase + 1]; i++) {
        int s = sensors[i];
        if (!r->bought[s] && METERED(s))
            unknown = 1;
        else if (!r->bought[s])
            due += price(r, s);
    }
    return unknown ? due < p->left - slack : due <= p->left;
}

/* Number PURCHASES is the free purchase. */
static void buy(struct policy *p, int purchase)
{
    struct row *r = &p->row;
    int asked[READABLE], count = 0;
    float values[READABLE];
    for (int f = 0; purchase == PURCHASES && f < READABLE; f++)
        if (needed[f] == 0)
            asked[count++] = f;
    for (int i = sensors_of[purchase]; i < sensors_of[purchase + 1]; i++) {
        int s = sensors[i];
        if (r->bought[s])
            continue;
        r->bought[s] = 1;
        for (int k = things_of[s]; k < things_of[s + 1]; k++) {
            int j = things[k] - READABLE;
            if (--p->lacking[things[k]] > 0)
                continue;
            if (j < 0) {
                asked[count++] = things[k];
                continue;
            }
            p->made[j] = 1;
            p->open--;
            if (marks[j] >= 0)
                take(r, marks[j], 1.0f);
        }
    }
    for (int k = 0; k < count; k++)
        values[k] = NAN;
    if (count > 0)
        acquire(r, count, asked, values);
    for (int k = 0; k < count; k++)
        if (places[asked[k]] >= 0)
            take(r, places[asked[k]], values[k]);
}

static const double *sums(struct row *r, int step)
{
    memcpy(r->sums.own, steps[step].bias, sizeof r->sums.own);
    read_trees(r, steps + step);
    return r->sums.own;
}

/* The next purchase, -1 for none. */
static int next(struct policy *p)
{
    double worth[WIDTH], best = 0.0;
    int chosen = -1;
    for (int k = 0; k < WIDTH; k++)
        worth[k] = -INFINITY;
    for (int step = 0; step < VALUES; step++) {
        const double *own = sums(&p->row, step);
        for (int k = 0; k < WIDTH; k++)
            worth[k] = own[k] > worth[k] ? own[k] : worth[k];
    }
    for (int j = 0; j < PURCHASES; j++) {
        double rate = worth[j], price = 0.0;
        if (p->made[j])
            continue;
        if (RATE || SKIP)
            price = price_after(&p->row, j);
        if (SKIP && price > p->left)
            continue;
        if (RATE)
            rate = price > 0.0 ? (rate > 0.0 ? rate : 0.0) / price : INFINITY;
        if (chosen < 0 || rate > best) {
            chosen = j;
            best = rate;
        }
    }
    return best >= (RATE ? LEAST : worth[STOP]) ? chosen : -1;
}

int bench_scores(const struct bench_source *source, double *scores, double *spent)
{
    struct policy p;
    struct row *r = &p.row;
    int asked = 0, stopped = BENCH_END;
    memset(&p, 0, sizeof p);
    r->source = source;
    p.open = PURCHASES;
    memcpy(p.lacking, needed, sizeof p.lacking);
    p.money = (source->cap != 0 && !(source->cap > CAP) ? source->cap : CAP) * (1 + 1e-9) - (SPLIT * ANSWER_SPLITS + TREE * ANSWER_TREES);
    if (!(p.money >= 0)) {
        for (int k = 0; k < BENCH_OUTPUTS; k++)
            scores[k] = NAN;
        if (spent)
            *spent = 0.0;
        return BENCH_CAP;
    }
    for (int c = 0; c < READ; c++)
        take(r, c, NAN);
    for (int j = 0; j < PURCHASES; j++)
        if (marks[j] >= 0)
            take(r, marks[j], 0.0f);
    buy(&p, PURCHASES);
    p.left = p.money - price_of(r);
    while (p.open > 0) {
        double due = SPLIT * ACT_SPLITS + TREE * ACT_TREES;
        int chosen;
        stopped = BENCH_CAP;
        if (due > p.left)
            break;
        p.left -= due;
        p.money -= due;
        asked++;
        chosen = next(&p);
        if (chosen >= 0 && !affords(&p, chosen))
            break;
        stopped = BENCH_END;
        if (chosen < 0)
            break;
        buy(&p, chosen);
        p.left = p.money - price_of(r);
    }
    memcpy(scores, sums(r, VALUES), BENCH_OUTPUTS * sizeof *scores);
    if (spent)
        *spent = price_of(r) + (SPLIT * (asked * ACT_SPLITS + ANSWER_SPLITS) + TREE * (asked * ACT_TREES + ANSWER_TREES));
    return stopped;
}
