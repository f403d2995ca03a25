//! System calls that a sandboxed command cannot use (seccomp(2)): sockets, and calls that
//! circumvent Landlock; and those few that a reader of documents can use.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, CLONE_NEWUSER, EPERM,
    PRIO_PROCESS, SECCOMP_RET_ERRNO, SOCK_DGRAM, SOCK_RAW,
};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, apply_filter_all_threads, sock_filter,
};

/// System calls that are refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    // io_uring performs operations that this filter does not see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Access to other processes, and to files other than by path.
    libc::SYS_pidfd_getfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    libc::SYS_chroot,
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // The user's keys in the kernel (keyrings(7)).
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Subsystems that few programs need and many exploits use.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // System V shared memory, semaphores and queues: shared by all processes of the user, and not
    // files.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// The system calls of a reader: its open pipes, memory, threads that wait, time and random
/// numbers.
const READER: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls that set how a process is scheduled. The first argument is its id; 0 is the caller.
const SCHEDULING: [libc::c_long; 4] =
    [libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];

/// IOPRIO_WHO_PROCESS (ioprio_set(2)).
const IOPRIO_PROCESS: u64 = 1;

/// TIOCSTI and TIOCLINUX (ioctl_tty(2)), which insert input into a terminal.
const IOCTLS: [u64; 2] = [0x5412, 0x541c];

/// First number of the x32 system calls, an alternative ABI of x86-64. No other architecture has
/// such high numbers.
const X32: u32 = 0x4000_0000;

/// Mask of the socket type, without flags (socket(2)).
const SOCKET_TYPES: u64 = 0xf;

/// Applies the filter to this process, which must have one thread, and to its descendants. Programs
/// for another architecture, such as 32-bit programs, are killed.
pub(super) fn confine(network: bool) -> Result<(), Error> {
    apply_filter(&program(network)?)
}

fn program(network: bool) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(network)?);
    // Refuse datagram and raw socket pairs: unlike stream pairs, they can send to any socket path.
    rules.insert(libc::SYS_socketpair, any([SOCK_DGRAM, SOCK_RAW].map(|kind| bits(1, SOCKET_TYPES, kind as u64)))?);
    rules.insert(libc::SYS_clone, any([bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)])?);
    rules.insert(libc::SYS_unshare, any([bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)])?);
    // Refuse setting the resource limits of other processes, which could kill them.
    let (others, new) =
        (compared(0, SeccompCmpOp::Ne, 0)?, SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?);
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![others, new])?]);
    // Refuse changing the scheduling and priorities of other processes.
    for call in SCHEDULING {
        rules.insert(call, any([compared(0, SeccompCmpOp::Ne, 0)])?);
    }
    for (call, process) in [(libc::SYS_setpriority, PRIO_PROCESS as u64), (libc::SYS_ioprio_set, IOPRIO_PROCESS)] {
        rules.insert(call, any([compared(0, SeccompCmpOp::Ne, process), compared(1, SeccompCmpOp::Ne, 0)])?);
    }
    rules.insert(libc::SYS_ioctl, any(IOCTLS.map(|ioctl| compared(1, SeccompCmpOp::Eq, ioctl)))?);
    let refused = SeccompAction::Errno(EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let mut program = before();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// Returns rules that refuse all sockets or, with `network`, all sockets except internet and
/// netlink. Programs use netlink sockets to query network addresses.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, BackendError> {
    if !network {
        return Ok(Vec::new());
    }
    let others = [AF_INET, AF_INET6, AF_NETLINK].map(|family| compared(0, SeccompCmpOp::Ne, family as u64));
    Ok(vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?])
}

/// Returns the instructions that run first and depend only on the call number. The filter cannot
/// read the arguments of clone3(2), so it returns ENOSYS, and programs fall back to clone(2).
fn before() -> BpfProgram {
    let step = |code: u32, jf: u8, k: u32| sock_filter { code: code as u16, jt: 0, jf, k };
    let refuse = |errno: i32| step(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | errno as u32);
    vec![
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 1, libc::SYS_clone3 as u32),
        refuse(libc::ENOSYS),
        step(BPF_JMP | BPF_JGE | BPF_K, 1, X32),
        refuse(EPERM),
    ]
}

/// Leaves all threads of this process only the calls in [`READER`], and signals to itself, with
/// which it aborts. The other calls fail.
pub(in crate::process) fn confine_reader_calls() -> Result<(), Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = READER.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_tgkill, any([compared(0, SeccompCmpOp::Eq, std::process::id().into())])?);
    rules.insert(libc::SYS_tkill, any([compared(0, SeccompCmpOp::Eq, rustix::thread::gettid().as_raw_nonzero().get() as u64)])?);
    let refused = SeccompAction::Errno(EPERM as u32);
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
    let mut program = before();
    program.extend(BpfProgram::try_from(filter)?);
    apply_filter_all_threads(&program)
}

type Condition = Result<SeccompCondition, BackendError>;

/// Returns one rule per condition, so that a call is refused if any condition matches.
fn any<const N: usize>(conditions: [Condition; N]) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// Compares the lower 32 bits of an argument: the kernel ignores the upper bits of these arguments.
fn compared(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// Compares the bits of an argument selected by `mask`.
fn bits(argument: u8, mask: u64, value: u64) -> Condition {
    compared(argument, SeccompCmpOp::MaskedEq(mask), value)
}
