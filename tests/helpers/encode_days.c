/* Encode dates, one a line, as the column "day"; write its value, and 1 if errno is EDOM. */
#include "bench_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[200];
    while (fgets(line, sizeof line, stdin)) {
        double value;
        line[strcspn(line, "\n")] = 0;
        errno = 0;
        value = bench_encode_day(line);
        printf("%.9g %d\n", value, errno == EDOM);
    }
    return 0;
}
