"""Write ``seccomp.json``: the system calls that a sandboxed container may make.

Run as ``python -m runner.engines.make_seccomp > runner/engines/seccomp.json`` on x86-64 Linux with libseccomp.
The profile is an allow-list: every call that libseccomp knows by number, without the groups below. It
replaces the engine's own default profile (profiles do not stack), which lets through io_uring, vsock,
netlink and ptrace in common releases. The file is committed, so that a run's lock does not depend on the
libseccomp of the machine.
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
    "never implemented": "afs_syscall getpmsg putpmsg security tuxcall vserver epoll_ctl_old epoll_wait_old",
}
# Allowed only with certain arguments, see conditional().
CONDITIONAL = ("clone", "clone3", "mknod", "mknodat", "personality", "socket", "socketpair")


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


def conditional() -> list[dict[str, object]]:
    """The rules that look at arguments."""

    def rule(names: list[str], *, value: int, index: int = 0, mask: int | None = None) -> dict[str, object]:
        check: dict[str, object] = {"index": index, "value": value, "op": "SCMP_CMP_EQ"}
        if mask is not None:
            check |= {"value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
        return {"names": names, "action": "SCMP_ACT_ALLOW", "args": [check]}

    return [
        # no new namespaces: none of the CLONE_NEW* bits
        rule(["clone"], value=0, mask=0x7E020080),
        # its flags lie behind a pointer, which a filter cannot read; ENOSYS makes the C library use clone
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        # named pipes, never devices: the type of file in the mode (S_IFMT, S_IFIFO)
        rule(["mknod"], index=1, value=0o010000, mask=0o170000),
        rule(["mknodat"], index=2, value=0o010000, mask=0o170000),
        # asking for the current personality only
        rule(["personality"], value=0xFFFFFFFF),
        *[rule(["socket", "socketpair"], value=family) for family in (1, 2, 10)],  # unix, inet, inet6
    ]


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


if __name__ == "__main__":
    sys.stdout.write(json.dumps(profile(), indent=1) + "\n")
