/* Serve rows of text, one a line, cells with tabs between in the order of bench_names, "" where
   missing; write score and cost of each, and how often acquire was called for a column. */
#include "bench_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1000], *cells[BENCH_FEATURES];
static int asked[BENCH_FEATURES];

static void acquire(void *context, int count, const int *columns, float *values)
{
    (void)context;
    for (int k = 0; k < count; k++) {
        const char *name = bench_names[columns[k]], *cell = cells[columns[k]];
        asked[columns[k]]++;
        if (strcmp(name, "city") == 0)
            values[k] = bench_encode_city(cell);
        else if (strcmp(name, "job") == 0)
            values[k] = bench_encode_job(*cell ? cell : NULL);
        else if (strcmp(name, "signup") == 0)
            values[k] = bench_encode_signup(cell);
        else if (*cell)
            values[k] = strcmp(name, "seen_at") == 0 ? bench_encode_seen_at(atof(cell)) : (float)atof(cell);
    }
}

int main(void)
{
    struct bench_source source = {0};
    source.acquire = acquire;
    while (fgets(line, sizeof line, stdin)) {
        double spent, score;
        char *at = line;
        int most = 0;
        line[strcspn(line, "\n")] = 0;
        for (int k = 0; k < BENCH_FEATURES; k++) {
            cells[k] = at;
            at += strcspn(at, "\t");
            *at++ = 0;
            asked[k] = 0;
        }
        score = bench_score(&source, &spent);
        for (int k = 0; k < BENCH_FEATURES; k++)
            most = asked[k] > most ? asked[k] : most;
        printf("%.17g %.17g %d\n", score, spent, most);
    }
    return 0;
}
