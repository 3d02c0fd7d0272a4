//! The medium as the air of the radios that the kernel's driver `mac80211_hwsim` makes: [`run`].
//!
//! The driver hands each frame that a radio sends to the program that has registered as its medium, which tells it
//! what became of the frame, and hands it to the radios that have received it. Everything else is the kernel's and
//! its programs': association, keys, rate control, queues, power saving, roaming.

mod air;
mod capture;
mod counters;
mod error;
mod frame;
mod message;
mod radios;
mod rates;
mod roles;
mod run;
mod socket;

pub use counters::{NotCarried, RadioReport, Report};
pub use error::MediumError;
pub use frame::AirFrame;
pub use radios::Radios;
pub use run::{Options, open, run};

/// The most frames of one radio that the medium keeps. From 200 frames on that are not yet reported, the driver frees
/// the oldest 101 although the medium has them; the rest is for those that are on their way to the medium.
pub const MOST_KEPT: u32 = 180;

/// The hardware address of a radio or of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(pub(crate) [u8; 6]);

impl Address {
    /// Whether it is the address of several receivers.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// The address that the first interface of a radio has by default. The driver tells radios apart by a second
    /// address, which differs in one bit.
    pub(crate) fn of_first_interface(self) -> Self {
        let mut bytes = self.0;
        bytes[0] &= !0x40;
        Self(bytes)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = self.0.map(|byte| format!("{byte:02x}"));
        f.write_str(&parts.join(":"))
    }
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("found \"{text}\", expected an address such as 02:00:00:00:01:00");
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let is_byte = |part: &&str| {
                part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit())
            };
            let part = parts.next().filter(is_byte).ok_or_else(wrong)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written_and_nothing_else_is() {
        let address: Address = "42:00:00:00:0a:ff".parse().unwrap();
        assert_eq!(address.to_string(), "42:00:00:00:0a:ff");
        assert_eq!(address.of_first_interface().to_string(), "02:00:00:00:0a:ff");
        for wrong in
            ["", "42:00:00:00:0a", "42:00:00:00:0a:ff:01", "42:00:00:00:0a:+f", "4:200:00:00:0a:ff"]
        {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
