/* What Score-P does with a metric plugin, in short. */
#include <scorep/SCOREP_MetricPlugins.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

volatile long sink;

void loop(int n)
{
    for (int i = 0; i < n; i++)
        sink++;
}

int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    SCOREP_Metric_Plugin_Info (*get_info)(void) =
        (SCOREP_Metric_Plugin_Info(*)(void))dlsym(library, "SCOREP_MetricPlugin_effort_plugin_get_info");
    SCOREP_Metric_Plugin_Info info = get_info();
    if (info.initialize() != 0)
        return 2;
    SCOREP_Metric_Plugin_MetricProperties *found = info.get_event_info((char *)"basic_blocks");
    printf("%s %s\n", found[0].name, found[1].name ? "more" : "end");
    printf("%s\n", info.get_event_info((char *)"nonsense")->name ? "known" : "unknown");
    int counter = info.add_counter(found->name);
    for (int n = 100; n <= 200; n += 100) {
        unsigned long long before = info.get_current_value(counter);
        loop(n);
        printf("%llu\n", (unsigned long long)info.get_current_value(counter) - before);
    }
    info.finalize();
    return 0;
}
