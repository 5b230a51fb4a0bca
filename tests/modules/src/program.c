/* What programs do that a sandbox has to bear, one of it per run. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int open_one(const char *path, int flags) {
    int file = open(path, flags, 0600);
    if (file < 0) {
        printf("%s\n", strerror(errno));
        return 1;
    }
    if (flags != O_RDONLY && write(file, "x", 1) != 1) {
        printf("%s\n", strerror(errno));
        return 1;
    }
    puts("opened");
    return 0;
}

static int count(FILE *from) {
    int in = 0, words = 0, letter;
    while ((letter = getc(from)) != EOF) {
        int is_space = letter == ' ' || letter == '\n' || letter == '\t';
        words += !is_space && !in;
        in = !is_space;
    }
    return words;
}

static int recurse(int depth) {
    volatile char frame[64];
    frame[depth & 63] = 1;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[depth & 63];
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "count";
    const char *path = argc > 2 ? argv[2] : ".";
    if (!strcmp(what, "count")) {
        FILE *from = argc > 2 ? fopen(path, "r") : stdin;
        if (!from) {
            fprintf(stderr, "%s: %s\n", path, strerror(errno));
            return 1;
        }
        printf("%d\n", count(from));
    } else if (!strcmp(what, "read")) {
        return open_one(path, O_RDONLY);
    } else if (!strcmp(what, "write")) {
        return open_one(path, O_WRONLY | O_CREAT);
    } else if (!strcmp(what, "list")) {
        DIR *directory = opendir(path);
        if (!directory) {
            puts(strerror(errno));
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(directory));)
            if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                puts(entry->d_name);
    } else if (!strcmp(what, "link")) {
        if (argc > 3 && link(path, argv[3]) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "symlink")) {
        if (argc > 3 && symlink(path, argv[3]) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "rename")) {
        if (argc > 3 && rename(path, argv[3]) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "remove")) {
        if (unlink(path) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "truncate")) {
        if (truncate(path, 0) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "touch")) {
        struct timespec times[2] = {{1, 0}, {1, 0}};
        if (utimensat(AT_FDCWD, path, times, 0) == 0)
            return 0;
        puts(strerror(errno));
        return 1;
    } else if (!strcmp(what, "environment")) {
        for (char **variable = environ; *variable; variable++)
            puts(*variable);
    } else if (!strcmp(what, "hog")) {
        for (;;) {
            volatile char *memory = malloc(1 << 20);
            if (!memory) {
                fputs("no memory\n", stderr);
                return 3;
            }
            *memory = 1;
        }
    } else if (!strcmp(what, "flood")) {
        for (;;)
            puts("a line, and another one");
    } else if (!strcmp(what, "descriptors")) {
        for (;;)
            open(path, O_RDONLY);
    } else if (!strcmp(what, "recurse")) {
        return recurse(0);
    } else if (!strcmp(what, "abort")) {
        abort();
    } else if (!strcmp(what, "busy")) {
        puts("{\"error\":{\"code\":\"busy\",\"message\":\"locked\"}}");
        return 75;
    } else if (!strcmp(what, "spin")) {
        for (volatile int i = 0;; i++)
            ;
    } else {
        fprintf(stderr, "what is '%s'?\n", what);
        return 2;
    }
    return 0;
}
