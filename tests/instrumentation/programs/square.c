/* n * n steps in solve, and how long they took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

volatile double sink;

void solve(int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            sink += i ^ j;
}

int main(int count, char **arguments)
{
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    solve(count > 1 ? atoi(arguments[1]) : 10);
    clock_gettime(CLOCK_MONOTONIC, &after);
    printf("solve: %.9f s\n", (after.tv_sec - before.tv_sec) + 1e-9 * (after.tv_nsec - before.tv_nsec));
    return 0;
}
