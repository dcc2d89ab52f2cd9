/* Ends in the way that its argument says. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long sink;

void loop(int n)
{
    for (int i = 0; i < n; i++)
        sink++;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    loop(10);
    if (!strcmp(how, "exit"))
        exit(0);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "quick_exit"))
        quick_exit(0);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "term"))
        raise(SIGTERM);
    if (!strcmp(how, "segv"))
        *(volatile int *)0 = 1;
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "chdir") && chdir("/"))
        return 1;
    if (!strcmp(how, "fork")) {
        if (fork() == 0) {
            loop(5);
            exit(0);
        }
        wait(NULL);
    }
    return 0;
}
