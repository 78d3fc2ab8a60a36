"""Write ``seccomp.json``: the system calls that a sandboxed container may make.

Run as ``python -m benchmarks.make_seccomp > runner/engines/seccomp.json`` on x86-64 Linux with libseccomp.
The profile is an allow-list: every call that libseccomp knows by number, without the groups below. It
replaces the engine's own default profile (profiles do not stack), which lets through io_uring, vsock,
netlink and ptrace in common releases. The file is committed, so that a run's lock does not depend on the
libseccomp of the machine.

A denied call fails with EPERM, unless common software survives another answer better: then the answer is in
``ANSWERS`` or beside its rule. Arguments are only compared for equality, within the bits that the kernel
reads: the registers have 64 bits, and "not equal" could be had by setting one that nobody looks at.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import fnmatch
import json
import sys

ARCH_X86_64 = 0xC000003E  # AUDIT_ARCH_X86_64
LAST_NUMBER = 479

DENIED = {
    "file systems and mounts": "mount umount2 pivot_root chroot open_tree* move_mount fsopen fsconfig fsmount fspick "
    "mount_setattr swapon swapoff quotactl quotactl_fd sysfs ustat statmount listmount",
    "namespaces": "unshare setns",
    "the kernel and the machine": "create_module init_module finit_module delete_module get_kernel_syms query_module "
    "kexec_* reboot syslog bpf perf_event_open acct uselib lookup_dcookie nfsservctl vhangup _sysctl "
    "settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm modify_ldt",
    "large attack surface": "io_uring_* userfaultfd memfd_secret fanotify_* open_by_handle_at name_to_handle_at",
    "keys": "add_key request_key keyctl",
    "other processes": "ptrace process_vm_* kcmp pidfd_getfd process_madvise migrate_pages move_pages",
    "identity": "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset",
    "System V and POSIX message passing (there is no IPC namespace to use)": "shm* sem* msg* mq_*",
    "the fill of the page cache": "mincore cachestat fadvise64 readahead",
    "contexts of asynchronous I/O, of which the machine has a fixed number": "io_setup io_destroy io_submit "
    "io_cancel io_getevents io_pgetevents",
    "orders to write to the disk": "sync syncfs fsync fdatasync sync_file_range",
    "inode numbers of processes, which only grow": "pidfd_open",
    "never implemented": "afs_syscall getpmsg putpmsg security tuxcall vserver epoll_ctl_old epoll_wait_old",
}
# Allowed only with certain arguments, see conditional().
CONDITIONAL: tuple[str, ...] = (
    "clone",
    "clone3",
    "fcntl",
    "getsockopt",
    "inotify_add_watch",
    "ioctl",
    "madvise",
    "mknod",
    "mknodat",
    "msync",
    "personality",
    "preadv2",
)
CONDITIONAL += ("prlimit64", "pwritev2", "setrlimit", "setsockopt", "socket", "socketpair", "statx")

ENODEV, EINVAL, ENOTTY, ENOSPC, ENOSYS = 19, 22, 25, 28, 38
ENOPROTOOPT, EPROTONOSUPPORT, EOPNOTSUPP = 92, 93, 95
ANSWERED = 0  # the call returns 0 and nothing has happened

# What denied calls answer instead of EPERM.
ANSWERS = {
    # Absent from the kernel, as far as anybody can see: software falls back.
    ENOSYS: "clone3 pidfd_open cachestat io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents",
    # Advice may be ignored. Java throws when mincore fails, so it succeeds and tells nothing. And all that a sandbox can write lies in memory, so there is nothing to bring to
    # the disk: an order to do so would only be a load on the machine, or on the clock of others.
    ANSWERED: "mincore fadvise64 readahead sync syncfs fsync fdatasync sync_file_range",
}

LOW_32 = 0xFFFFFFFF
ALL_64 = 0xFFFFFFFFFFFFFFFF
PAGE_ADVICE = (20, 21)  # MADV_COLD, MADV_PAGEOUT: out of the page cache
MADVICE = [*range(0, 5), *range(8, 20), *range(22, 26), 102, 103]
LEASES = (1024, 1026)  # F_SETLEASE, F_NOTIFY: news of what others do with a file
FCNTL = [*range(0, 17), 36, 37, 38, 1025, *range(1027, 1039)]
MS_SYNC = 4
# RLIMIT_CPU and RLIMIT_RTTIME end a process by a SIGKILL of the kernel, also the init, which a sandbox else cannot kill:
# it would look as if the machine had done it (runner/engines/witness.py).
ENDING_LIMITS = (0, 15)
OTHER_LIMITS = range(1, 15)
NOWAIT, DONTCACHE = 0x08, 0x80  # RWF_: read what is in the page cache, drop it from there
OTHER_RWF = LOW_32 & ~0x37 & ~NOWAIT & ~DONTCACHE

STREAM, DATAGRAM = 1, 2
SOCKET_TYPE = LOW_32 & ~0o2004000  # without SOCK_CLOEXEC and SOCK_NONBLOCK
# Ping (ICMP, ICMPv6), UDP-Lite, MPTCP: software that asks for them takes the usual ones when it is told so.
UNWANTED_PROTOCOLS = ((DATAGRAM, 1), (DATAGRAM, 58), (DATAGRAM, 136), (STREAM, 262))

# Options of sockets that are denied, and what is answered: programs attached to a socket (filters), kernel TLS,
# keys, IPsec, and groups of receivers: each takes kernel memory that is nobody's. level: (options, denied, answer)
SOCKET_OPTIONS = {
    1: (
        range(1, 86),
        (26, 27, 44, 50, 51, 52, 76),
        ENOPROTOOPT,
    ),  # SOL_SOCKET: SO_ATTACH_FILTER … BPF, PASSPIDFD
    6: (range(1, 51), (14, 19, 31, 32, 38, 39, 40), ENOPROTOOPT),  # TCP: MD5SIG, REPAIR, ULP, AO
    17: ((1, 101, 102, 103, 104), (100,), ENOPROTOOPT),  # UDP: ENCAP
    0: (range(1, 53), (16, 17, *range(35, 49)), ENODEV),  # IP: multicast, IPsec
    41: (range(1, 81), (20, 21, 27, 28, 32, 34, 35, *range(42, 49)), ENODEV),  # IPv6: the same, flow labels
}

# Counters of the whole kernel that only grow: a later run would read how far an earlier one has moved them.
SOL_SOCKET = 1
COUNTING_OPTIONS = (57, 71, 77)  # SO_COOKIE, SO_NETNS_COOKIE, SO_PEERPIDFD
CLONE_PIDFD = 0x1000
IN_MOVED_FROM, IN_MOVED_TO = (
    0x40,
    0x80,
)  # such an event holds the number of renames (programs poll after ENOSPC)
STATX_MNT_ID_UNIQUE = 0x4000
IOCTL_TYPE, NAMESPACES = 0xFF00, 0xB700  # NS_GET_MNTNS_ID, NS_GET_ID


def known() -> list[str]:
    """The names of the x86-64 calls that the installed libseccomp knows, sorted."""
    lib = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2")
    resolve = lib.seccomp_syscall_resolve_num_arch
    resolve.restype = ctypes.c_void_p
    resolve.argtypes = [ctypes.c_uint32, ctypes.c_int]
    found = []
    for number in range(LAST_NUMBER + 1):
        pointer = resolve(ARCH_X86_64, number)
        if pointer:
            found.append(ctypes.string_at(pointer).decode("ascii"))
    return sorted(set(found))


Check = tuple[int, int, int]  # index of the argument, the bits that count, their value


def rule(names: str, *checks: Check, answer: int | None = None) -> dict[str, object]:
    """Allow ``names`` where every check holds; with an ``answer``, deny them with this error number."""
    args = [
        {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
        for index, mask, value in checks
    ]
    made: dict[str, object] = {"names": names.split(), "action": "SCMP_ACT_ALLOW"}
    if answer is not None:
        made |= {"action": "SCMP_ACT_ERRNO", "errnoRet": answer}
    return made | ({"args": args} if args else {})


def unlike(index: int, mask: int, varying: int, values: tuple[int, ...]) -> list[Check]:
    """Return checks of which exactly one holds if the argument has none of ``values`` within ``mask``, else none.

    Bits of ``mask`` that are not ``varying`` have to be 0.
    """
    checks: list[Check] = []

    def divide(bits: int, value: int, rest: list[int]) -> None:
        if all(excluded & bits != value for excluded in values):
            checks.append((index, bits, value))
        elif rest:
            for choice in (0, rest[0]):
                divide(bits | rest[0], value | choice, rest[1:])

    divide(mask & ~varying, 0, [1 << place for place in range(31, -1, -1) if varying >> place & 1])
    return checks


def counters() -> list[dict[str, object]]:
    """Return the rules for calls that can read counters of the kernel, except ``clone`` and ``setsockopt``."""
    of_sockets = (1, LOW_32, SOL_SOCKET)
    return [
        *[rule("getsockopt", (1, LOW_32, level)) for level in SOCKET_OPTIONS if level != SOL_SOCKET],
        *[rule("getsockopt", of_sockets, check) for check in unlike(2, LOW_32, 0x7F, COUNTING_OPTIONS)],
        *[
            rule("getsockopt", of_sockets, (2, LOW_32, option), answer=ENOPROTOOPT)
            for option in COUNTING_OPTIONS
        ],
        rule("inotify_add_watch", (2, IN_MOVED_FROM | IN_MOVED_TO, 0)),
        rule("inotify_add_watch", (2, IN_MOVED_FROM, IN_MOVED_FROM), answer=ENOSPC),
        rule("inotify_add_watch", (2, IN_MOVED_FROM | IN_MOVED_TO, IN_MOVED_TO), answer=ENOSPC),
        rule("statx", (3, STATX_MNT_ID_UNIQUE, 0)),
        rule("statx", (3, STATX_MNT_ID_UNIQUE, STATX_MNT_ID_UNIQUE), answer=EINVAL),
        *[rule("ioctl", check) for check in unlike(1, IOCTL_TYPE, IOCTL_TYPE, (NAMESPACES,))],
        rule("ioctl", (1, IOCTL_TYPE, NAMESPACES), answer=ENOTTY),
    ]


def conditional() -> list[dict[str, object]]:
    """The rules that look at arguments. No two of one call fit the same arguments."""
    return [
        # no new namespaces and no pidfd: none of the CLONE_NEW* bits; clone3's flags lie behind a pointer, hence ENOSYS
        rule("clone", (0, 0x7E020080 | CLONE_PIDFD, 0)),
        # named pipes, never devices: the type of file in the mode (S_IFMT, S_IFIFO)
        rule("mknod", (1, 0o170000, 0o010000)),
        rule("mknodat", (2, 0o170000, 0o010000)),
        # asking for the current personality only
        rule("personality", (0, LOW_32, LOW_32)),
        *[rule("madvise", (2, LOW_32, advice)) for advice in MADVICE],
        *[rule("madvise", (2, LOW_32, advice), answer=ANSWERED) for advice in PAGE_ADVICE],
        *[rule("fcntl", (1, LOW_32, command)) for command in FCNTL],
        *[rule("setrlimit", (0, LOW_32, limit)) for limit in OTHER_LIMITS],
        *[rule("prlimit64", (1, LOW_32, limit)) for limit in OTHER_LIMITS],
        # asking for it only: no new value
        *[rule("prlimit64", (1, LOW_32, limit), (2, ALL_64, 0)) for limit in ENDING_LIMITS],
        *[rule("fcntl", (1, LOW_32, command), answer=EINVAL) for command in LEASES],
        rule("msync", (2, MS_SYNC, 0)),
        rule("msync", (2, MS_SYNC, MS_SYNC), answer=ANSWERED),
        rule("preadv2 pwritev2", (5, OTHER_RWF | NOWAIT | DONTCACHE, 0)),
        rule("preadv2 pwritev2", (5, NOWAIT, NOWAIT), answer=EOPNOTSUPP),
        rule("preadv2 pwritev2", (5, NOWAIT | DONTCACHE, DONTCACHE), answer=EOPNOTSUPP),
        *sockets(),
        *counters(),
        *[rule(names, answer=answer) for answer, names in ANSWERS.items()],
    ]


def _socket(family: int, kind: int, protocol: int) -> tuple[Check, ...]:
    return (0, LOW_32, family), (1, SOCKET_TYPE, kind), (2, LOW_32, protocol)


def sockets() -> list[dict[str, object]]:
    """Unix sockets, TCP and UDP, without the options that hold memory or programs in the kernel."""
    rules = [rule("socket socketpair", (0, LOW_32, 1))]
    for family in (2, 10):  # IPv4, IPv6
        for kind, protocol in ((STREAM, 6), (DATAGRAM, 17)):
            for number in (0, protocol):
                rules.append(rule("socket", *_socket(family, kind, number)))
        for kind, number in UNWANTED_PROTOCOLS:
            rules.append(rule("socket", *_socket(family, kind, number), answer=EPROTONOSUPPORT))
    for level, (options, denied, answer) in SOCKET_OPTIONS.items():
        for option in sorted({*options, *denied}):
            checks = ((1, LOW_32, level), (2, LOW_32, option))
            rules.append(rule("setsockopt", *checks, answer=answer if option in denied else None))
    return rules


def profile() -> dict[str, object]:
    """The whole profile in the form the engine takes."""
    patterns = [pattern for group in DENIED.values() for pattern in group.split()]
    allowed = [
        name
        for name in known()
        if name not in CONDITIONAL and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": ["SCMP_ARCH_X86_64"],
        "syscalls": [{"names": allowed, "action": "SCMP_ACT_ALLOW"}, *conditional()],
    }


def text() -> str:
    """The profile as JSON, one rule a line."""
    made = profile()
    rules = ",\n".join(json.dumps(rule) for rule in made.pop("syscalls"))  # type: ignore[attr-defined]
    return json.dumps(made)[:-1] + f', "syscalls": [\n{rules}\n]}}\n'


if __name__ == "__main__":
    sys.stdout.write(text())
