//! Numbers that identify this station and each of its associations.

use std::io;

/// The context of the hash. It separates this hash from other uses of the machine id. The id is
/// hashed because machine-id(5) asks programs not to show the id itself.
const CONTEXT: &str = "wakeai 2026 station number from machine id and hardware address";

/// The station's number. It is the same at every start, and it is different on each interface and
/// machine.
pub(crate) fn station_number(machine_id: &str, hardware: [u8; 6]) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(machine_id.trim().as_bytes());
    hasher.update(&hardware);
    let hash = hasher.finalize();
    let first = hash.as_bytes().first_chunk::<8>().expect("a hash has 32 bytes");
    u64::from_le_bytes(*first)
}

/// A random id. The agent makes a new one for each association.
pub(crate) fn boot_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_depends_on_machine_and_interface_alone() {
        let number = station_number("abc\n", [2, 0, 0, 0, 0, 1]);
        assert_eq!(number, station_number("abc", [2, 0, 0, 0, 0, 1]));
        assert_ne!(number, station_number("abc", [2, 0, 0, 0, 0, 2]));
        assert_ne!(number, station_number("abd", [2, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn no_boot_id_is_given_twice() {
        assert_ne!(boot_id().unwrap(), boot_id().unwrap());
    }
}
