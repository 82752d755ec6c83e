/* One row through a model, see bench_model.h: C99, without -ffast-math, which loses missing values. */

#include "bench_model.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "-ffast-math loses missing values: compile without it"
#endif

/* constants */

struct node { int32_t key; NARROW cell, below; };
struct leaf { double value, path; };
struct use { size_t root; int levels, output, billed; };
struct column { int cell, output; double weight, mean, factor; };
struct step {
    int first_use, last_use, first_column, last_column, first_read, last_read, carry, combine, gate,
        then, otherwise, stop_then, stop_otherwise, kernel, first_price, last_price;
    double value, bias[WIDTH];
};
struct weighted_price { int sensor, output; double weight, mean; };
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
    unsigned char bought[SENSORS]; /* 2: at a metered price, which is not known yet */
#if BY_ROW
    unsigned char priced[SENSORS];
    double own[SENSORS];
#endif
    double score[WIDTH], stop[WIDTH];
    double price, cap;
    struct sums sums;
    int stopped, capped;
#if ENCODED
    float codes[BENCH_FEATURES];
    unsigned char known[BENCH_FEATURES];
#endif
};

#if BY_ROW
#define METERED(s) metered[s]
/* The price of a sensor for the row, asked for once. */
static double price(struct row *r, int s)
{
    if (price_columns[s] < 0)
        return prices[s];
    if (!r->priced[s]) {
        const struct bench_source *from = r->source;
        r->own[s] = from->price ? from->price(from->context, price_columns[s]) : NAN;
        if (!(r->own[s] >= 0.0))
            r->own[s] = prices[s];
        r->priced[s] = 1;
    }
    return r->own[s];
}

static double price_of(struct row *r)
{
    double total = 0.0;
    for (int s = 0; s < SENSORS; s++)
        if (r->bought[s] == 1)
            total += price(r, s);
    return total;
}
#else
#define METERED(s) 0
#define price(r, s) prices[s]
/* Four independent sums, for speed. */
static double price_of(const struct row *r)
{
    const unsigned char *bought = r->bought;
    double total[4] = {0.0};
    int s = 0;
    for (; s + 4 <= SENSORS; s += 4)
        for (int k = 0; k < 4; k++)
            total[k] += bought[s + k] * prices[s + k];
    for (; s < SENSORS; s++)
        total[0] += bought[s] * prices[s];
    return (total[0] + total[1]) + (total[2] + total[3]);
}
#endif

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

#if TEXTS || DATES || COMMAS
/* The place among these of a text without surrounding blanks, which are cut off; -1: none. */
static int find(const char **text, const char **end, const char *const *texts, int count)
{
    while (**text == ' ' || (**text >= '\t' && **text <= '\r'))
        (*text)++;
    for (*end = *text + strlen(*text);
         *end > *text && ((*end)[-1] == ' ' || ((*end)[-1] >= '\t' && (*end)[-1] <= '\r')); (*end)--)
        ;
    for (int k = 0; k < count; k++)
        if (strlen(texts[k]) == (size_t)(*end - *text) && memcmp(texts[k], *text, (size_t)(*end - *text)) == 0)
            return k;
    return -1;
}
#endif

#if TEXTS
/* The code of a text: the first number among these. */
static float encode(const char *text, const char *const *texts, const float *codes, int count, float other)
{
    const char *end;
    int k = text ? find(&text, &end, texts, count) : -1;
    return !text ? NAN : k < 0 ? other : codes[k];
}
#endif

#if DATES
/* Read a number of some digits; 0: there are fewer. */
static int digits(const char **at, int least, int most, double *number)
{
    int count = 0;
    for (*number = 0.0; count < most && **at >= '0' && **at <= '9'; (*at)++, count++)
        *number = 10.0 * *number + (double)(**at - '0');
    return count >= least;
}

/* Read [T ]H:MM[:SS[.S]][Z|+HH[:]MM] as seconds in UTC; 0: it is none. */
static int time_of(const char **at, double *seconds)
{
    double hour, minute, second = 0.0, part, scale = 1.0, east, rest;
    if ((**at != 'T' && **at != ' ') || ((*at)++, !digits(at, 1, 2, &hour)) || **at != ':')
        return 0;
    if ((*at)++, !digits(at, 2, 2, &minute) || hour > 23.0 || minute > 59.0)
        return 0;
    if (**at == ':') {
        if ((*at)++, !digits(at, 2, 2, &second) || second > 59.0)
            return 0;
        if (**at == '.') {
            const char *from = ++*at;
            if (!digits(at, 1, 9, &part))
                return 0;
            for (; from < *at; from++)
                scale *= 10.0;
            second = (second * scale + part) / scale;
            while (**at >= '0' && **at <= '9')
                (*at)++;
        }
    }
    if (**at == 'Z')
        (*at)++;
    else if (**at == '+' || **at == '-') {
        double sign = *(*at)++ == '+' ? 1.0 : -1.0;
        if (!digits(at, 2, 2, &east) || (**at == ':' && ((*at)++, 0)) || !digits(at, 2, 2, &rest))
            return 0;
        hour -= sign * east;
        minute -= sign * rest;
    }
    *seconds = 3600.0 * hour + 60.0 * minute + second;
    return 1;
}

/* Days since 1970-01-01 of a date such as 2024-02-01, also with a time, or in this format. NAN if
   it is missing; NAN and errno EDOM if it is not a date. */
static double days(const char *text, const char *format)
{
    static const char *const missing[] = {MISSING};
    static const double last[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    double year = 0.0, month = 0.0, day = 0.0, seconds = 0.0, age, leap;
    const char *end, *at;
    int sound;
    if (!text || find(&text, &end, missing, (int)(sizeof missing / sizeof *missing)) >= 0)
        return NAN;
    at = text;
    if (digits(&at, 4, 4, &year) && *at == '-') {
        at++;
        sound = digits(&at, 1, 2, &month) && *at++ == '-' && digits(&at, 1, 2, &day)
            && (at == end || time_of(&at, &seconds));
    } else {
        double *first = format[0] == 'M' ? &month : &day, *second = format[0] == 'M' ? &day : &month;
        at = text;
        sound = format[0] != 'Y' && digits(&at, 1, 2, first) && *at++ == format[1]
            && digits(&at, 1, 2, second) && *at++ == format[1] && digits(&at, 4, 4, &year);
    }
    sound = sound && at == end && year >= 1.0 && month >= 1.0 && month <= 12.0 && day >= 1.0;
    leap = fmod(year, 4.0) == 0.0 && (fmod(year, 100.0) != 0.0 || fmod(year, 400.0) == 0.0);
    if (!sound || day > last[(int)month - 1] - (month == 2.0 && leap == 0.0)) {
        errno = EDOM;
        return NAN;
    }
    age = month <= 2.0 ? year - 1.0 : year; /* years begin in March */
    day += floor((153.0 * (month > 2.0 ? month - 3.0 : month + 9.0) + 2.0) / 5.0) - 1.0;
    day += 365.0 * age + floor(age / 4.0) - floor(age / 100.0) + floor(age / 400.0) - 719468.0;
    return (86400.0 * day + seconds) / 86400.0;
}
#endif

#if COMMAS
static int digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes of a separator of groups of digits; 0: there is none. */
static size_t separator(const char *at)
{
    static const char *const known[] = {".", " ", "'", "\xc2\xa0", "\xe2\x80\xaf"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strncmp(at, known[k], strlen(known[k])) == 0)
            return strlen(known[k]);
    return 0;
}

/* A number with a decimal comma, such as 1.234,50. NAN if it is missing; NAN and errno EDOM if it is
   not a number, or one with a decimal point. */
static double comma(const char *text)
{
    static const char *const missing[] = {MISSING};
    const char *end, *at;
    char plain[64], *last = plain;
    size_t length = 0, width;
    int grouped;
    double number = NAN;
    if (!text || find(&text, &end, missing, (int)(sizeof missing / sizeof *missing)) >= 0)
        return NAN;
    at = text + (*text == '-' || *text == '+');
    const char *from = at;
    while (digit(*at))
        at++;
    grouped = at > from;
    for (long first = at - from; grouped && (width = separator(at)) > 0 && at < end; at += width + 3)
        grouped = first <= 3 && digit(at[width]) && digit(at[width + 1]) && digit(at[width + 2]);
    grouped = grouped && !digit(*at);
    if (grouped && *at == ',')
        for (grouped = digit(*++at); digit(*at); at++)
            ;
    grouped = grouped && (at == end || *at == 'e' || *at == 'E');
    for (at = text; at < end && length + 1 < sizeof plain;) {
        width = grouped ? separator(at) : 0;
        if (width == 0)
            plain[length++] = *at == ',' ? *localeconv()->decimal_point : *at;
        at += width > 0 ? width : 1;
    }
    plain[length] = '\0';
    if (at == end && length > 0 &&
        (grouped ||
         (!memchr(text, ',', (size_t)(end - text)) && !memchr(text, '.', (size_t)(end - text)))))
        number = strtod(plain, &last);
    if (last == plain || *last != '\0') {
        errno = EDOM;
        return NAN;
    }
    return number;
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
