// Every way to be called; main takes the length of the loops.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

volatile long sink;

static int zero[64];

void loop(int n)
{
    for (int i = 0; i < n; i++)
        sink += i;
}

// Two calls from one basic block, with arguments on the stack.
void many(long a, long, long, long, long, long, long h, long i)
{
    sink += a + i;
    loop((int)h);
}

void clear(std::vector<int> &values) // memset, and vectorised, if the compiler may
{
    for (auto &value : values)
        value = 0;
}

struct Box {
    std::vector<double> values;
    double &at(int i) { return values[i]; }
};

double accessed(Box &box, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += box.at(i);
    return sum;
}

template <class T> T templated(T n)
{
    T sum = 0;
    for (T i = 0; i < n; i++)
        sum += i ^ sum;
    return sum;
}

void thrower(int n)
{
    loop(n);
    if (n > 2)
        throw std::runtime_error("thrown");
}

void catcher()
{
    try {
        thrower(3);
    } catch (std::exception &) {
        loop(2);
    }
    loop(1);
}

int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

void sorted()
{
    qsort(zero, 8, sizeof(int), compare);
    loop(4);
}

void in_thread(int n) { loop(n); }

int main(int, char **arguments)
{
    int n = atoi(arguments[1]);
    loop(n);
    loop(n);
    many(1, 2, 3, 4, 5, 6, 5, 9);
    many(1, 2, 3, 4, 5, 6, 5, 9);
    std::vector<int> values(n);
    clear(values);
    Box box;
    box.values.resize(n);
    sink += (long)accessed(box, n) + templated(n);
    catcher();
    sink += fibonacci(10);
    sorted();
    std::thread first(in_thread, n), second(in_thread, n);
    first.join();
    second.join();
    return 0;
}
