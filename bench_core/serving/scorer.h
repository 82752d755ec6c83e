#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

/* @about@
   One row: bench_score returns @what@, and in spent, unless NULL, what it paid.
   @meaning@. */

#define BENCH_FEATURES @features@
#define BENCH_OUTPUTS @outputs@

#ifdef __cplusplus
extern "C" {
#endif

/* How a row's way ended: at the end of the model, at a gate that let it go, at the cap. */
enum { BENCH_END, BENCH_GATE, BENCH_CAP };

/* acquire is called with all features that one more sensor yields to the model, by number, in the
   order of need and never twice for one; it sets their values, NAN where missing. Where all
   BENCH_FEATURES values are at hand, acquire is NULL and cells points to them: they are billed as
   if they had been asked for. Where there is a function bench_encode_NAME, it makes the value of
   that feature. No row costs more than cap; 0 means @cap@. */
struct bench_source {
    void *context;
    void (*acquire)(void *context, int count, const int *features, float *values);
    const float *cells;
    double cap;
};

/* The names of the features, by number. */
extern const char *const bench_names[BENCH_FEATURES];

@encoders@@score@/* The same with BENCH_OUTPUTS scores; returns how the row's way ended. */
int bench_scores(const struct bench_source *source, double *scores, double *spent);

#ifdef __cplusplus
}
#endif

#endif
