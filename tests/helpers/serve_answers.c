/* Write the class that answers each row of a file (float32) as an int. Usage: ROWS OUT. */
#include "bench_model.h"

#include <stdio.h>

int main(int count, char **words)
{
    static float cells[BENCH_FEATURES];
    FILE *in = count == 3 ? fopen(words[1], "rb") : NULL, *out = in ? fopen(words[2], "wb") : NULL;
    if (!out)
        return 2;
    while (fread(cells, sizeof(float), BENCH_FEATURES, in) == BENCH_FEATURES) {
        struct bench_source source = {0};
        double scores[BENCH_OUTPUTS];
        int answer;
        source.cells = cells;
        bench_scores(&source, scores, NULL);
        answer = bench_answer(scores);
        fwrite(&answer, sizeof answer, 1, out);
    }
    fclose(in);
    fclose(out);
    return 0;
}
