/* A stand-in for Score-P's header: the names and types that the plugin uses, so that it compiles without Score-P. */
#include <stdbool.h>
#include <stdint.h>

#define SCOREP_METRIC_PLUGIN_VERSION 0
#define SCOREP_METRIC_PLUGIN_ENTRY(name)                                                                     \
    extern SCOREP_Metric_Plugin_Info SCOREP_MetricPlugin_##name##_get_info(void)

enum { SCOREP_METRIC_MODE_ACCUMULATED_START };
enum { SCOREP_METRIC_VALUE_INT64, SCOREP_METRIC_VALUE_UINT64 };
enum { SCOREP_METRIC_BASE_BINARY, SCOREP_METRIC_BASE_DECIMAL };
enum { SCOREP_METRIC_PER_THREAD };
enum { SCOREP_METRIC_STRICTLY_SYNC };

typedef struct {
    char *name, *description;
    int mode, value_type, base;
    int64_t exponent;
    char *unit;
} SCOREP_Metric_Plugin_MetricProperties;

typedef struct {
    uint32_t plugin_version;
    int run_per, sync;
    uint64_t delta_t;
    int32_t (*initialize)(void);
    void (*finalize)(void);
    SCOREP_Metric_Plugin_MetricProperties *(*get_event_info)(char *);
    int32_t (*add_counter)(char *);
    uint64_t (*get_current_value)(int32_t);
    bool (*get_optional_value)(int32_t, uint64_t *);
} SCOREP_Metric_Plugin_Info;
