#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

/* @about@
   One row: bench_score returns @what@, and stores its cost in spent unless NULL.
   @meaning@.@bill@ */

#define BENCH_FEATURES @features@
#define BENCH_OUTPUTS @outputs@@price_count@

#ifdef __cplusplus
extern "C" {
#endif

/* End of a row: at the end of the model, at a gate (early exit), at the cap. */
enum { BENCH_END, BENCH_GATE, BENCH_CAP };

/* Each call of acquire requests all features that one more sensor yields to the model, by number,
   in the order of need; no feature is requested twice. It sets their values, NAN if missing. If all
   BENCH_FEATURES values are known, set acquire to NULL and cells to the values: the bill is the
   same. If a function bench_encode_NAME exists, it makes the value of that feature. No row costs
   more than cap; 0 means @cap@, which cap can only lower.@prices@ */
struct bench_source {
    void *context;
    void (*acquire)(void *context, int count, const int *features, float *values);
    const float *cells;
    double cap;@price@
};

/* The names of the features, by number@columns@ */
extern const char *const bench_names[BENCH_FEATURES];
@price_names@
@encoders@@score@/* The same with BENCH_OUTPUTS scores; returns the kind of end. */
int bench_scores(const struct bench_source *source, double *scores, double *spent);
@answer@
#ifdef __cplusplus
}
#endif

#endif
