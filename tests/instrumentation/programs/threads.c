/* Threads of OpenMP and of POSIX; the same region is called from two places. */
#include <pthread.h>

volatile long sink;

void loop(int n)
{
    for (int i = 0; i < n; i++)
        sink++;
}

void region(int n)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i++)
        loop(3);
}

void other(int n)
{
    region(n);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < n; i++)
        loop(2);
}

void *work(void *nothing) /* whose first block may be the head of its loop */
{
    for (int i = 0; i < 3; i++)
        loop(10);
    return nothing;
}

void starter(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
    }
}

int main(void)
{
    region(40);
    other(20);
    starter();
    return 0;
}
