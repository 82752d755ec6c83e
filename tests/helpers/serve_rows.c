/* Serve the rows of a file (float32, BENCH_FEATURES cells each) and write, for each row, scores, costs, how it
   ended and how many features were asked for, as float64. Usage: ROWS OUT CAP [PRICES]; 3 if one is
   asked for twice, 4 if the answer is another one where all cells are at hand. PRICES: those of each
   row (float64, BENCH_PRICES each), if prices differ by row. */
#include "bench_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BENCH_PRICES
#define BENCH_PRICES 1
#define FIXED
#endif

struct shop {
    const float *cells;
    int asked, twice;
    unsigned char sold[BENCH_FEATURES], told[BENCH_PRICES];
    double prices[BENCH_PRICES];
};

#ifndef FIXED
static double price(void *context, int column)
{
    struct shop *shop = context;
    shop->twice |= shop->told[column];
    shop->told[column] = 1;
    return shop->prices[column];
}
#endif

static void acquire(void *context, int count, const int *features, float *values)
{
    struct shop *shop = context;
    for (int k = 0; k < count; k++) {
        shop->twice |= shop->sold[features[k]];
        shop->sold[features[k]] = 1;
        shop->asked++;
        values[k] = shop->cells[features[k]];
    }
}

int main(int count, char **words)
{
    static float cells[BENCH_FEATURES];
    FILE *in = count >= 4 ? fopen(words[1], "rb") : NULL, *out = in ? fopen(words[2], "wb") : NULL;
    FILE *paid = count == 5 ? fopen(words[4], "rb") : NULL;
    int twice = 0, unlike = 0;
    if (!out)
        return 2;
    while (fread(cells, sizeof(float), BENCH_FEATURES, in) == BENCH_FEATURES) {
        struct shop shop = {0};
        struct bench_source source;
        double line[BENCH_OUTPUTS + 3], again[BENCH_OUTPUTS + 1];
        shop.cells = cells;
        source.context = &shop;
        source.acquire = acquire;
        source.cells = NULL;
        source.cap = atof(words[3]);
#ifndef FIXED
        source.price = paid ? price : NULL;
        if (paid && fread(shop.prices, sizeof(double), BENCH_PRICES, paid) != BENCH_PRICES)
            return 2;
#endif
        line[BENCH_OUTPUTS + 1] = bench_scores(&source, line, &line[BENCH_OUTPUTS]);
        line[BENCH_OUTPUTS + 2] = shop.asked;
        fwrite(line, sizeof(double), BENCH_OUTPUTS + 3, out);
        twice |= shop.twice;
        memset(shop.told, 0, sizeof shop.told);
        source.acquire = NULL;
        source.cells = cells;
        bench_scores(&source, again, again + BENCH_OUTPUTS);
        unlike |= memcmp(line, again, sizeof again) != 0;
    }
    fclose(in);
    if (paid)
        fclose(paid);
    fclose(out);
    return twice ? 3 : unlike ? 4 : 0;
}
