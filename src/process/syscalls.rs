//! System calls that a confined command does not get (seccomp(2)): sockets, and what leads around Landlock.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, CLONE_NEWUSER, EPERM,
    SECCOMP_RET_ERRNO, SOCK_DGRAM, SOCK_RAW,
};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

/// Refused whatever their arguments are.
const REFUSED: &[libc::c_long] = &[
    // They do, unseen by this filter, what others are refused for.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes, and files by other names than paths.
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
    // Keys of the user, which live in the kernel.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Parts of the kernel that few programs need and many attacks use.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // System V's memory, semaphores and queues, which are the user's and no file.
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

/// TIOCSTI and TIOCLINUX (ioctl_tty(2)): to type at a terminal for its user.
const IOCTLS: [u64; 2] = [0x5412, 0x541c];

/// Calls from here on are those of x32, another way to say the same on x86-64; no other architecture has so many.
const X32: u32 = 0x4000_0000;

/// Types of sockets without their flags (socket(2)).
const SOCKET_TYPES: u64 = 0xf;

/// Has this process, which has one thread, and all that it starts refused what is listed here. Programs for another architecture,
/// as 32-bit ones, are killed.
pub(super) fn confine(network: bool) -> Result<(), Error> {
    apply_filter(&program(network)?)
}

fn program(network: bool) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(network)?);
    // A pair is for those who share it; but one for datagrams can send to any path.
    rules.insert(libc::SYS_socketpair, any([SOCK_DGRAM, SOCK_RAW].map(|kind| bits(1, SOCKET_TYPES, kind as u64)))?);
    rules.insert(libc::SYS_clone, any([bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)])?);
    rules.insert(libc::SYS_unshare, any([bits(0, CLONE_NEWUSER as u64, CLONE_NEWUSER as u64)])?);
    // Limits of other processes, by which they could be ended.
    let (others, new) =
        (compared(0, SeccompCmpOp::Ne, 0)?, SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?);
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![others, new])?]);
    rules.insert(libc::SYS_ioctl, any(IOCTLS.map(|ioctl| compared(1, SeccompCmpOp::Eq, ioctl)))?);
    let refused = SeccompAction::Errno(EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let mut program = before();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// No socket at all, or those of the internet, and netlink, by which programs ask for addresses.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, BackendError> {
    if !network {
        return Ok(Vec::new());
    }
    let others = [AF_INET, AF_INET6, AF_NETLINK].map(|family| compared(0, SeccompCmpOp::Ne, family as u64));
    Ok(vec![SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)?])
}

/// What is decided by the number alone, before anything else. The arguments of clone3(2) cannot be seen: as if it did not exist, so
/// that clone(2) is taken.
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

type Condition = Result<SeccompCondition, BackendError>;

/// One rule for each.
fn any<const N: usize>(conditions: [Condition; N]) -> Result<Vec<SeccompRule>, BackendError> {
    conditions.into_iter().map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// The kernel takes these arguments as 32 bits, whatever stands above them.
fn compared(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn bits(argument: u8, mask: u64, value: u64) -> Condition {
    compared(argument, SeccompCmpOp::MaskedEq(mask), value)
}
