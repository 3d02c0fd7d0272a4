//! The nl80211 client. The agent and `wakeai probe air` use it.

mod association;
mod link;
mod message;
mod phy;
mod reader;
mod survey;

use std::time::Duration;

use wl_nl80211::{Nl80211Attr, Nl80211Command, Nl80211InterfaceType, Nl80211Message};

pub(crate) use self::association::{Association, LastAssociation};
pub use self::link::{Link, Traffic};
use self::message::ask;
pub use self::phy::PhyRate;
pub use self::reader::{ReadError, WifiReader};
pub use self::survey::Survey;

/// The longest time that the agent waits for an answer. An answer normally takes microseconds. The limit keeps a
/// driver that hangs from delaying the start.
const PATIENCE: Duration = Duration::from_millis(200);

/// nl80211 could not be queried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WifiError {
    /// No driver of a Wi-Fi adapter is loaded, or the driver does not use cfg80211.
    #[error("the kernel has no nl80211")]
    NoNl80211,
    /// The interface is not a Wi-Fi interface.
    #[error("{0}")]
    NotWifi(String),
    /// The interface is not a client of an access point.
    #[error(
        "the interface is of type {0}, not a station; to use it all the same, state bssid and link_rate \
         in the configuration"
    )]
    NotStation(String),
    /// The driver does not list the access point, although the interface has joined a network.
    #[error(
        "the interface has joined a network, but its driver does not name the access point; if this lasts, \
         state bssid in the configuration"
    )]
    Unlisted,
    /// nl80211 did not answer in time.
    #[error("nl80211 did not answer within {} ms", PATIENCE.as_millis())]
    Slow,
}

/// A netlink socket that stays open while the agent runs.
pub(crate) struct Wifi {
    handle: wl_nl80211::Nl80211Handle,
    connection: tokio::task::JoinHandle<()>,
}

impl Drop for Wifi {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Wifi {
    /// Opens the netlink socket, in the network namespace of the calling thread.
    pub(crate) fn open() -> std::io::Result<Self> {
        let (connection, handle, _) = wl_nl80211::new_connection()?;
        Ok(Self { handle, connection: tokio::spawn(connection) })
    }

    /// The association of an interface. It is `None` while the interface is not associated.
    pub(crate) async fn association(&self, index: u32) -> Result<Option<Association>, WifiError> {
        let found = async {
            // This request comes before the dump, because the netlink library shows an error of this request.
            // The kernel reports an error of a dump in the dump's last message, and the library does not show
            // that error.
            let joined = is_joined(&self.interface(index).await?)?;
            match self.access_point(index).await? {
                Some(station) => Ok(Association::of(&station)),
                None if joined => Err(WifiError::Unlisted),
                None => Ok(None),
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or(Err(WifiError::Slow))
    }

    /// The answer of nl80211 about the interface with this index.
    async fn interface(&self, index: u32) -> Result<Nl80211Message, WifiError> {
        let one = vec![Nl80211Attr::IfIndex(index)];
        let answers = ask(&self.handle, Nl80211Command::GetInterface, one, false).await?;
        let no_answer = || WifiError::NotWifi("no answer about the interface".to_owned());
        answers.into_iter().next().ok_or_else(no_answer)
    }

    /// The access point of a station. In managed mode the access point is the first station of the list. TDLS peers
    /// come after it.
    async fn access_point(&self, index: u32) -> Result<Option<Nl80211Message>, WifiError> {
        Ok(self.list(Nl80211Command::GetStation, Some(index)).await?.into_iter().next())
    }

    /// The list that this command gives, of one interface or of all.
    async fn list(
        &self,
        command: Nl80211Command,
        index: Option<u32>,
    ) -> Result<Vec<Nl80211Message>, WifiError> {
        let of = index.map(Nl80211Attr::IfIndex).into_iter().collect();
        ask(&self.handle, command, of, true).await
    }
}

/// The type of an interface, as `iw` names it.
pub(crate) fn kind_words(kind: Nl80211InterfaceType) -> String {
    let name = match kind {
        Nl80211InterfaceType::Adhoc => "IBSS",
        Nl80211InterfaceType::Station => "managed",
        Nl80211InterfaceType::Ap => "AP",
        Nl80211InterfaceType::ApVlan => "AP/VLAN",
        Nl80211InterfaceType::Wds => "WDS",
        Nl80211InterfaceType::Monitor => "monitor",
        Nl80211InterfaceType::MeshPoint => "mesh point",
        Nl80211InterfaceType::P2pClient => "P2P-client",
        Nl80211InterfaceType::P2pGo => "P2P-GO",
        Nl80211InterfaceType::P2pDevice => "P2P-device",
        Nl80211InterfaceType::Ocb => "outside context of a BSS",
        Nl80211InterfaceType::Nan => "NAN",
        other => return format!("number {}", u32::from(other)),
    };
    name.to_owned()
}

/// Whether the interface has joined a network, that is, whether it has an SSID. Returns an error if the interface
/// is not a station.
fn is_joined(interface: &Nl80211Message) -> Result<bool, WifiError> {
    let untyped = || WifiError::NotWifi("the kernel does not give the interface's type".to_owned());
    let kind = kind(interface).ok_or_else(untyped)?;
    if !is_station(kind) {
        return Err(WifiError::NotStation(kind_words(kind)));
    }
    Ok(interface.attributes.iter().any(|attribute| matches!(attribute, Nl80211Attr::SsidRaw(_))))
}

/// The type of the interface.
fn kind(interface: &Nl80211Message) -> Option<Nl80211InterfaceType> {
    interface.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::IfType(kind) => Some(*kind),
        _ => None,
    })
}

/// Whether an interface of this type is the client of an access point.
fn is_station(kind: Nl80211InterfaceType) -> bool {
    matches!(kind, Nl80211InterfaceType::Station | Nl80211InterfaceType::P2pClient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wl_nl80211::Nl80211Command;

    #[test]
    fn only_a_client_of_an_access_point_is_a_station() {
        let interface =
            |attributes| Nl80211Message { cmd: Nl80211Command::NewInterface, attributes };
        let of = |kind, ssid: Option<Nl80211Attr>| {
            is_joined(&interface([Nl80211Attr::IfType(kind)].into_iter().chain(ssid).collect()))
        };
        let school = || Some(Nl80211Attr::SsidRaw(b"school".to_vec()));
        assert!(of(Nl80211InterfaceType::Station, school()).unwrap());
        let latin1 = Nl80211Attr::SsidRaw(b"caf\xe9".to_vec());
        assert!(of(Nl80211InterfaceType::Station, Some(latin1)).unwrap(), "not always UTF-8");
        assert!(!of(Nl80211InterfaceType::P2pClient, None).unwrap());
        for kind in [Nl80211InterfaceType::Ap, Nl80211InterfaceType::Monitor] {
            assert!(matches!(of(kind, school()), Err(WifiError::NotStation(_))));
        }
        assert!(matches!(is_joined(&interface(Vec::new())), Err(WifiError::NotWifi(_))));
    }
}
