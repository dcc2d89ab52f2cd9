/* From an address to the function it is in, by the symbol tables of the program and its libraries. */
#define _GNU_SOURCE
#include "effort.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL 128 /* bytes of code */

enum { NO, YES, PERHAPS };

struct module {
    struct module *next;
    const char *path;
    uintptr_t low, high; /* of its code */
    struct region *regions;
    size_t count;
};

static struct module *module_at(uintptr_t address);

const char *effort_unnamed;
static struct module *modules;
static struct lock guard = {ATOMIC_FLAG_INIT};
__thread struct cached *effort_cache;

/* Only there in C++ programs, which are the only ones to need it. */
extern char *__cxa_demangle(const char *, char *, size_t *, int *) __attribute__((weak));

static const char *readable(const char *symbol)
{
    if (strncmp(symbol, "_Z", 2) != 0 || !__cxa_demangle)
        return symbol;
    int status = 0;
    char *name = __cxa_demangle(symbol, NULL, NULL, &status);
    return status == 0 && name ? name : symbol;
}

/* Functions that are not part of the program's own code: of the C++ library, and static initialisers. */
static int is_foreign(const char *symbol)
{
    static const char *const prefixes[] = {
        "_ZSt",
        "_ZNSt",
        "_ZNKSt",
        "_ZN9__gnu_cxx",
        "_ZNK9__gnu_cxx",
        "_GLOBAL__sub_",
        "_Z41__static_initialization_and_destruction_0",
        "__cxx_global_var_init",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(symbol, prefixes[i], strlen(prefixes[i])) == 0)
            return 1;
    return 0;
}

/* The function that the call before this return address calls, or 0. */
static uintptr_t callee(uintptr_t back)
{
#if defined(__x86_64__)
    int32_t distance;
    memcpy(&distance, (const void *)(back - 4), sizeof distance);
    return *(const unsigned char *)(back - 5) == 0xe8 ? back + distance : 0;
#elif defined(__aarch64__)
    uint32_t word = *(const uint32_t *)(back - 4);
    return word >> 26 == 0x25 ? back - 4 + (intptr_t)((int32_t)(word << 6) >> 4) : 0;
#else
    (void)back;
    return 0;
#endif
}

/* Whether a function is a single basic block with at most one call: an accessor, an operator. Its blocks are
 * counted in its machine code, where each begins with the same call as the one at this address. */
static int is_accessor(const struct region *region, uintptr_t address)
{
    uintptr_t counter = callee(address);
    int blocks = 0, calls = 0;
    for (uintptr_t back = region->low + 5; counter && back <= region->low + region->size; back++) {
        uintptr_t target = callee(back);
        blocks += target == counter;
        calls += target && target != counter && module_at(target);
    }
    return blocks == 1 && calls <= 1;
}

static void sift(struct region *heap, size_t place, size_t count)
{
    for (size_t child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && heap[child + 1].low > heap[child].low)
            child++;
        if (heap[place].low >= heap[child].low)
            return;
        struct region swapped = heap[place];
        heap[place] = heap[child];
        heap[child] = swapped;
    }
}

/* Heap sort by address: qsort may call malloc. */
static void sort(struct region *regions, size_t count)
{
    for (size_t place = count / 2; place-- > 0;)
        sift(regions, place, count);
    for (size_t end = count; end-- > 1;) {
        struct region swapped = regions[0];
        regions[0] = regions[end];
        regions[end] = swapped;
        sift(regions, 0, end);
    }
}

static void take_symbols(struct module *module, const char *file, const ElfW(Shdr) * table, uintptr_t base)
{
    const ElfW(Shdr) *sections = (const void *)(file + ((const ElfW(Ehdr) *)file)->e_shoff);
    const char *names = file + sections[table->sh_link].sh_offset;
    const ElfW(Sym) *symbols = (const void *)(file + table->sh_offset);
    size_t number = table->sh_size / sizeof *symbols;
    module->regions = effort_memory(number * sizeof *module->regions);
    for (size_t i = 0; i < number; i++) {
        const ElfW(Sym) *symbol = &symbols[i];
        if ((symbol->st_info & 15) != STT_FUNC || !symbol->st_size || symbol->st_shndx == SHN_UNDEF)
            continue;
        struct region *region = &module->regions[module->count++];
        region->name = names + symbol->st_name;
        region->low = base + symbol->st_value;
        region->size = symbol->st_size;
        region->starts = strcmp(region->name, "main") == 0;
        region->folded = is_foreign(region->name)                                   ? YES
                         : symbol->st_info >> 4 == STB_WEAK && symbol->st_size < SMALL ? PERHAPS
                                                                                    : NO;
    }
    sort(module->regions, module->count);
}

/* The file stays mapped: names point into it. */
static void read_symbols(struct module *module, uintptr_t base)
{
    int descriptor = open(*module->path ? module->path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0)
        return;
    const char *file = fstat(descriptor, &status) == 0
                           ? mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0)
                           : MAP_FAILED;
    close(descriptor);
    if (file == MAP_FAILED)
        return;
    const ElfW(Ehdr) *header = (const void *)file;
    if ((size_t)status.st_size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shoff + (size_t)header->e_shnum * sizeof(ElfW(Shdr)) > (size_t)status.st_size)
        return;
    const ElfW(Shdr) *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            take_symbols(module, file, &sections[i], base);
}

struct wanted {
    uintptr_t address;
    struct module *found;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct wanted *wanted = data;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || wanted->address - low >= part->p_memsz)
            continue;
        struct module *module = effort_memory(sizeof *module);
        char *path = effort_memory(strlen(info->dlpi_name) + 1);
        module->path = strcpy(path, info->dlpi_name);
        module->low = low;
        module->high = low + part->p_memsz;
        read_symbols(module, info->dlpi_addr);
        module->next = modules;
        modules = wanted->found = module;
        return 1;
    }
    return 0;
}

static struct module *module_at(uintptr_t address)
{
    for (struct module *module = modules; module; module = module->next)
        if (module->low <= address && address < module->high)
            return module;
    struct wanted wanted = {address, NULL};
    dl_iterate_phdr(visit, &wanted);
    return wanted.found;
}

static struct region *look_up(uintptr_t address)
{
    static struct region nowhere = {.name = "(unknown)", .size = UINTPTR_MAX};
    struct module *module = module_at(address);
    if (!module)
        return &nowhere;
    size_t low = 0, high = module->count;
    while (low < high) { /* the last region that begins at or before the address */
        size_t middle = (low + high) / 2;
        if (module->regions[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    struct region *region = low ? &module->regions[low - 1] : NULL;
    if (!region || address - region->low >= region->size) {
        effort_unnamed = *module->path ? module->path : "the program";
        return &nowhere;
    }
    while (region > module->regions && region[-1].low == region->low)
        region--; /* several names for one function: always the same */
    if (!region->entry)
        region->name = readable(region->name);
    /* Weak: from a header. Call paths for each of these would hide the application's functions. */
    if (region->folded == PERHAPS)
        region->folded = is_accessor(region, address) ? YES : NO;
    return region;
}

struct region *effort_region_at(uintptr_t address)
{
    if (!effort_cache)
        effort_cache = effort_memory(CACHE * sizeof *effort_cache);
    struct cached *slot = &effort_cache[SLOT(address)];
    if (slot->address != address) {
        effort_lock(&guard);
        struct region *region = look_up(address);
        effort_unlock(&guard);
        *slot = (struct cached){address, region};
    }
    return slot->region;
}
