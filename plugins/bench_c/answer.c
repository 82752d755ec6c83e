/* Costs of the true class (rows) and the answer (columns). */
int bench_answer(const double *scores)
{
    double top = BENCH_OUTPUTS == 1 && scores[0] < 0 ? 0.0 : scores[0], expected[CLASSES] = {0.0};
    int best = 0;
    for (int k = 1; k < BENCH_OUTPUTS; k++)
        top = scores[k] > top ? scores[k] : top;
    for (int k = 0; k < CLASSES; k++) {
        double score = BENCH_OUTPUTS > 1 ? scores[k] : k ? scores[0] : 0.0;
        double share = exp(score - top);
        for (int j = 0; j < CLASSES; j++)
            expected[j] += share * error_costs[k][j];
    }
    for (int j = 1; j < CLASSES; j++)
        if (expected[j] < expected[best])
            best = j;
    return best;
}
