//! Names of hosts, users and groups in the static program.

/// Makes the C library look names up by itself: hosts in `/etc/hosts` and with the name servers of
/// `/etc/resolv.conf`, users and groups in `/etc/passwd` and `/etc/group`.
///
/// Without this call a static glibc loads the modules that `/etc/nsswitch.conf` names. These modules are shared
/// libraries of the machine's own glibc, which has another version than the glibc in this program (nss(5);
/// docs/decisions/018).
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
#[allow(unsafe_code, reason = "no crate at hand wraps this function of glibc")]
pub(crate) fn keep_to_built_in_sources() {
    use std::ffi::{c_char, c_int};

    // SAFETY: the declaration is that of <nss.h>.
    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }
    for (database, sources) in
        [(c"hosts", c"files dns"), (c"passwd", c"files"), (c"group", c"files")]
    {
        // SAFETY: both strings live as long as the program, and no other thread runs yet.
        let status = unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
        assert_eq!(status, 0, "glibc has these databases and sources");
    }
}

/// Does nothing: a shared C library reads `/etc/nsswitch.conf`.
#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
pub(crate) fn keep_to_built_in_sources() {}
