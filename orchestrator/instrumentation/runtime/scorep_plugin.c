/* A Score-P metric plugin: basic blocks per call path and thread in .cubex files.
 *
 *   SCOREP_METRIC_PLUGINS=effort_plugin SCOREP_METRIC_EFFORT_PLUGIN=basic_blocks
 *
 * The counter itself is in the library that the program is linked with. Bytes and calls of MPI operations are in
 * every profile of Score-P already.
 */
#define _GNU_SOURCE
#include <scorep/SCOREP_MetricPlugins.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t (*blocks)(void);

static int32_t initialize(void)
{
    blocks = (uint64_t(*)(void))dlsym(RTLD_DEFAULT, "orchestrator_effort_blocks");
    void (*silence)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "orchestrator_effort_silence");
    if (!blocks || !silence) {
        fputs("effort_plugin: the program was not linked by 'orchestrator effort compiler --scorep'\n", stderr);
        return -1;
    }
    silence(); /* the counts are in the profile */
    return 0;
}

static void finalize(void)
{
}

static SCOREP_Metric_Plugin_MetricProperties *describe(char *name)
{
    SCOREP_Metric_Plugin_MetricProperties *found = calloc(2, sizeof *found); /* Score-P frees it */
    if (found && strcmp(name, "basic_blocks") == 0) {
        found->name = strdup("basic_blocks");
        found->description = strdup("executed basic blocks");
        found->mode = SCOREP_METRIC_MODE_ACCUMULATED_START;
        found->value_type = SCOREP_METRIC_VALUE_UINT64;
        found->base = SCOREP_METRIC_BASE_DECIMAL;
        found->unit = strdup("#");
    }
    return found;
}

static int32_t add(char *name)
{
    (void)name;
    return 0;
}

static uint64_t value(int32_t counter)
{
    (void)counter;
    return blocks();
}

static bool optional_value(int32_t counter, uint64_t *result)
{
    *result = value(counter);
    return true;
}

__attribute__((visibility("default"))) SCOREP_METRIC_PLUGIN_ENTRY(effort_plugin)
{
    SCOREP_Metric_Plugin_Info info = {
        .plugin_version = SCOREP_METRIC_PLUGIN_VERSION,
        .run_per = SCOREP_METRIC_PER_THREAD,
        .sync = SCOREP_METRIC_STRICTLY_SYNC,
        .initialize = initialize,
        .finalize = finalize,
        .get_event_info = describe,
        .add_counter = add,
        .get_current_value = value,
        .get_optional_value = optional_value,
    };
    return info;
}
