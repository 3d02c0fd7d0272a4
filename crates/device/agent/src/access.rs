//! Access to the local API. Root, the agent's own user and the members of one group may ask. Only
//! root and the agent's user may request a change.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::libc;
use tokio::net::UnixStream;

/// The largest number of a client's groups that can be read. Linux allows 65536 groups. A client
/// with more groups than this has no rights.
const MOST_GROUPS: usize = 1024;

/// The rights of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The client has no rights.
    None,
    /// The client may ask.
    Ask,
    /// The client may ask and request changes, as this user.
    Change(u32),
}

impl Access {
    /// The rights of the client. They follow from the credentials that the client had when it
    /// connected.
    pub(crate) fn of(stream: &UnixStream, group: Option<u32>) -> io::Result<Self> {
        let peer = stream.peer_cred()?;
        if peer.uid() == 0 || peer.uid() == nix::unistd::geteuid().as_raw() {
            return Ok(Self::Change(peer.uid()));
        }
        let Some(group) = group else { return Ok(Self::None) };
        let is_member = peer.gid() == group || peer_groups(stream.as_raw_fd())?.contains(&group);
        Ok(if is_member { Self::Ask } else { Self::None })
    }
}

/// The supplementary groups of the peer when it connected (`SO_PEERGROUPS`, socket(7)).
fn peer_groups(socket: RawFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; MOST_GROUPS];
    let mut length = libc::socklen_t::try_from(size_of_val(groups.as_slice()))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    #[allow(unsafe_code, reason = "no crate at hand wraps SO_PEERGROUPS")]
    // SAFETY: the kernel writes at most `length` bytes into `groups`, and `groups` has `length`
    // bytes.
    let status = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    groups.truncate(length as usize / size_of::<u32>());
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn the_kernel_tells_the_groups_of_the_other_end() {
        let (here, _there) = UnixStream::pair().unwrap();
        let own: Vec<u32> =
            nix::unistd::getgroups().unwrap().iter().map(|group| group.as_raw()).collect();
        let mut found = peer_groups(here.as_raw_fd()).unwrap();
        found.sort_unstable();
        let mut expected = own;
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_agents_own_user_may_ask_and_change() {
        let (here, _there) = UnixStream::pair().unwrap();
        assert!(matches!(Access::of(&here, None).unwrap(), Access::Change(_)));
    }
}
