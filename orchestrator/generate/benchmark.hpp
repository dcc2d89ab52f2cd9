// What all generated functions share: sizes, arrays, timers, counters and the report at the end.
//
// Built with -DCOUNT the program counts loop iterations and the bytes of MPI operations; without it, it
// measures time only. Counting and timing are two programs because counting takes time.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

// What one region of the code has cost on this rank.
struct Region {
    std::string callpath;
    double seconds = 0, cpu_seconds = 0, blocks = 0, calls = 0, sent = 0, received = 0;
};

inline std::vector<Region>& regions() {
    static std::vector<Region> all;
    return all;
}

inline Region*& current() {
    static Region* region = nullptr;
    return region;
}

inline double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Adds the time of its scope to a region.
class Timer {
  public:
    explicit Timer(const std::string& callpath) {
        regions().push_back({callpath});
        current() = &regions().back();
        cpu_ = cpu_seconds();
        wall_ = MPI_Wtime();
    }
    ~Timer() {
        current()->seconds += MPI_Wtime() - wall_;
        current()->cpu_seconds += cpu_seconds() - cpu_;
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

  private:
    double wall_ = 0, cpu_ = 0;
};

inline void count_block() {
#ifdef COUNT
    current()->blocks += 1;
#endif
}

// Bytes as Score-P counts them: a root sends to, or receives from, every rank, itself among them.
inline void count_call(double sent, double received) {
#ifdef COUNT
    current()->calls += 1;
    current()->sent += sent;
    current()->received += received;
#else
    (void)sent, (void)received;
#endif
}

// x^i * log2(x)^j, relative to the smallest x.
inline double growth(double x, double smallest, double i, double j) {
    return std::pow(x / smallest, i) * std::pow(std::log2(x) / std::log2(smallest), j);
}

inline std::size_t whole(double value) { return static_cast<std::size_t>(std::llround(value)); }

// Iterations of an inner loop in step k of the outer one: `mean` on average, though that is no whole number.
inline std::size_t share(double mean, std::size_t k) {
    const double step = static_cast<double>(k);
    return static_cast<std::size_t>(std::floor((step + 1) * mean) - std::floor(step * mean));
}

constexpr std::size_t kWindow = 1024;  // elements that loops work on: they stay in the cache

struct Arrays {
    std::vector<double> a = std::vector<double>(kWindow, 1.0);
    std::vector<double> b = std::vector<double>(kWindow, 0.5);
    std::vector<double> message, received;
};

// Two arrays long enough for messages of `count` elements per rank.
inline void reserve(Arrays& arrays, std::size_t sent, std::size_t received) {
    if (arrays.message.size() < sent) arrays.message.resize(sent, 1.0);
    if (arrays.received.size() < received) arrays.received.resize(received, 0.0);
}

// Prints one line per region and quantity, averaged over the ranks: region, metric, value.
inline void report() {
    int rank = 0, size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (const Region& region : regions()) {
        const double mine[] = {region.seconds, region.cpu_seconds, region.blocks,
                               region.calls,   region.sent,        region.received};
        double sum[6] = {};
        MPI_Reduce(mine, sum, 6, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank != 0) continue;
#ifdef COUNT
        const char* names[] = {nullptr, nullptr, "basic_blocks", "visits", "bytes_sent", "bytes_received"};
#else
        const char* names[] = {"time", "cpu_time", nullptr, nullptr, nullptr, nullptr};
#endif
        for (int k = 0; k < 6; ++k)
            if (names[k] && sum[k] > 0)
                std::printf("%s\t%s\t%.9g\n", region.callpath.c_str(), names[k], sum[k] / size);
    }
}
