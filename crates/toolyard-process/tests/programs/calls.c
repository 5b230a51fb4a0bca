/* Makes the system calls that no confined program may make, with arguments that do no harm where they are allowed. Prints
 * "NAME: ERROR" for each, or "NAME: done"; on x86_64 also by the number that x32 has for it, as "x32 NAME". Most arguments
 * are such that a kernel which does look at them says something else than EPERM. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define X32 0x40000000
#define BAD 1 /* No address. */
#define ALL(first) {first, -1, -1, -1, -1, -1}

struct call {
    const char *name;
    long number;
    long arguments[6];
};

static const struct call calls[] = {
    {"mount", SYS_mount, {BAD, BAD, BAD, 0, 0}},
    {"umount2", SYS_umount2, {BAD, 0}},
    {"pivot_root", SYS_pivot_root, {BAD, BAD}},
    {"chroot", SYS_chroot, {BAD}},
    {"open_tree", 428, {-1, BAD, 0}},
    {"move_mount", 429, {-1, BAD, -1, BAD, 0}},
    {"fsopen", 430, {BAD, 0}},
    {"fsconfig", 431, {-1, 0, BAD, BAD, 0}},
    {"fsmount", 432, {-1, 0, 0}},
    {"fspick", 433, {-1, BAD, 0}},
    {"mount_setattr", 442, {-1, BAD, 0, BAD, 0}},
    {"unshare", SYS_unshare, {0}},
    {"setns", SYS_setns, {-1, 0}},
    {"ptrace", SYS_ptrace, {PTRACE_PEEKDATA, -1, 0, 0}},
    {"process_vm_readv", SYS_process_vm_readv, {-1, 0, 0, 0, 0, 0}},
    {"process_vm_writev", SYS_process_vm_writev, {-1, 0, 0, 0, 0, 0}},
    {"process_madvise", 440, {-1, 0, 0, 0, 0}},
    {"pidfd_getfd", 438, {-1, -1, 0}},
    {"kcmp", SYS_kcmp, {-1, -1, 0, 0, 0}},
    {"add_key", SYS_add_key, {BAD, BAD, BAD, 0, 0}},
    {"request_key", SYS_request_key, {BAD, BAD, BAD, 0}},
    {"keyctl", SYS_keyctl, ALL(-1)},
    {"bpf", SYS_bpf, {-1, BAD, 0}},
    {"userfaultfd", SYS_userfaultfd, {-1}},
    {"perf_event_open", SYS_perf_event_open, {BAD, 0, -1, -1, 0}},
    {"init_module", SYS_init_module, {BAD, 0, BAD}},
    {"finit_module", SYS_finit_module, {-1, BAD, 0}},
    {"delete_module", SYS_delete_module, {BAD, 0}},
    {"kexec_load", SYS_kexec_load, {0, 1 << 20, BAD, 0}},
#ifdef SYS_kexec_file_load
    {"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, BAD, -1}},
#endif
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"quotactl", SYS_quotactl, {-1, BAD, 0, BAD}},
    {"quotactl_fd", 443, {-1, -1, 0, BAD}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, BAD, 0}},
    {"name_to_handle_at", SYS_name_to_handle_at, {-1, BAD, BAD, BAD, 0}},
    {"swapon", SYS_swapon, {BAD, 0}},
    {"swapoff", SYS_swapoff, {BAD}},
    {"acct", SYS_acct, {BAD}},
    {"syslog", SYS_syslog, {-1, 0, 0}},
    {"settimeofday", SYS_settimeofday, {BAD, 0}},
    {"clock_settime", SYS_clock_settime, {-1, BAD}},
    {"adjtimex", SYS_adjtimex, {BAD}},
    {"clock_adjtime", SYS_clock_adjtime, {-1, BAD}},
    {"ioctl TIOCSTI", SYS_ioctl, {-1, TIOCSTI, BAD}},
    {"ioctl TIOCSTI with high bits", SYS_ioctl, {-1, 0xF00000000l | TIOCSTI, BAD}},
    {"ioctl TIOCLINUX", SYS_ioctl, {-1, 0x541C, BAD}},
    {"ioctl TIOCLINUX with high bits", SYS_ioctl, {-1, 0xF00000000l | 0x541C, BAD}},
    {"clone3", 435, {BAD, 0}},
    {"io_uring_setup", 425, {0, BAD}},
    {"io_uring_enter", 426, {-1, 0, 0, 0, 0, 0}},
    {"io_uring_register", 427, {-1, 0, 0, 0}},
#ifdef __x86_64__
    /* Those that x32 has under numbers of its own. */
    {"x32's own ioctl", X32 | 514, {-1, TIOCSTI, BAD}},
    {"x32's own ptrace", X32 | 521, {PTRACE_PEEKDATA, -1, 0, 0}},
    {"x32's own kexec_load", X32 | 528, {0, 1 << 20, BAD, 0}},
    {"x32's own process_vm_readv", X32 | 539, {-1, 0, 0, 0, 0, 0}},
    {"x32's own process_vm_writev", X32 | 540, {-1, 0, 0, 0, 0, 0}},
#endif
};

static const struct { const char *name; long flag; } namespaces[] = {
    {"CLONE_NEWNS", CLONE_NEWNS}, {"CLONE_NEWCGROUP", CLONE_NEWCGROUP}, {"CLONE_NEWUTS", CLONE_NEWUTS},
    {"CLONE_NEWIPC", CLONE_NEWIPC}, {"CLONE_NEWUSER", CLONE_NEWUSER}, {"CLONE_NEWPID", CLONE_NEWPID},
    {"CLONE_NEWNET", CLONE_NEWNET},
};

static void said(const char *kind, const char *name, long result) {
    if (result < 0) printf("%s%s: %s\n", kind, name, strerrorname_np(errno));
    else printf("%s%s: done\n", kind, name);
    fflush(stdout);
}

static long make(long number, const long *a) {
    return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* What clone says, with a flag that makes a namespace and with one that the kernel refuses beside it, so that the answer
 * of one which looks is EINVAL and needs no privilege. */
static void clones(const char *kind, long bit) {
    char name[64];
    for (unsigned i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
        /* A thread needs the memory of its process to be shared. */
        long arguments[6] = {namespaces[i].flag | CLONE_THREAD, 0, 0, 0, 0, 0};
        snprintf(name, sizeof name, "clone %s", namespaces[i].name);
        said(kind, name, make(bit | SYS_clone, arguments));
    }
}

/* Sockets of every family and type, by what they say: TCP's lines are apart. */
static void sockets(const char *kind, long bit) {
    char name[64];
    for (int family = 0; family < 64; family++)
        for (int type = 0; type < 16; type++) {
            int is_tcp = (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM;
            snprintf(name, sizeof name, "%s %d %d", is_tcp ? "tcp" : "socket", family, type);
            long made = make(bit | SYS_socket, (long[6]){family, type, 0});
            said(kind, name, made);
            if (made >= 0) close(made);
        }
    long other_protocols[][6] = {{AF_INET, SOCK_STREAM, 262}, {AF_INET, SOCK_STREAM, IPPROTO_UDP},
                                 {AF_INET6, SOCK_STREAM, IPPROTO_SCTP}, {0xF00000000l | AF_INET, SOCK_DGRAM, 0}};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "socket of another protocol %d", i);
        said(kind, name, make(bit | SYS_socket, other_protocols[i]));
    }
}

static void pairs(const char *kind, long bit) {
    char name[64];
    int pair[2];
    for (int family = 0; family < 64; family++)
        for (int type = 0; type < 16; type++) {
            if (family == AF_UNIX && type == SOCK_STREAM) continue;
            snprintf(name, sizeof name, "socketpair %d %d", family, type);
            long made = make(bit | SYS_socketpair, (long[6]){family, type, 0, (long)pair});
            said(kind, name, made);
            if (made >= 0) close(pair[0]), close(pair[1]);
        }
}

/* On a terminal that is this process's own, which a kernel would let it type into. */
static void terminal(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) slave = open(ptsname(master), O_RDWR);
    if (slave < 0) {
        printf("no terminal: %s\n", strerrorname_np(errno));
        return;
    }
    ioctl(slave, TIOCSCTTY, 0);
    said("", "type into a terminal", ioctl(slave, TIOCSTI, "x"));
    said("", "type into a terminal, with high bits", syscall(SYS_ioctl, slave, 0xF00000000l | TIOCSTI, "x"));
    said("", "paste into a terminal", ioctl(slave, 0x541C, "\3"));
}

int main(void) {
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        said("", calls[i].name, make(calls[i].number, calls[i].arguments));
#ifdef __x86_64__
        if (!(calls[i].number & X32)) said("x32 ", calls[i].name, make(X32 | calls[i].number, calls[i].arguments));
#endif
    }
    clones("", 0);
    sockets("", 0);
    pairs("", 0);
#ifdef __x86_64__
    clones("x32 ", X32);
    sockets("x32 ", X32);
    pairs("x32 ", X32);
#endif
    int pair[2];
    said("", "pipe of a runtime", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    terminal();
    return 0;
}
