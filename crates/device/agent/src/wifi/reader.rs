//! An nl80211 client for a program that has no event loop.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;
use wl_nl80211::{Nl80211Attr, Nl80211Command, Nl80211InterfaceType, Nl80211Message};

use super::{Link, Wifi, WifiError, is_joined, is_station, kind, kind_words};
use crate::interface::{Interface, InterfaceError};

/// The longest wait for an answer. Some drivers ask their firmware first.
const PATIENCE: Duration = Duration::from_secs(3);

/// A station's link could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The namespace has no Wi-Fi interface, or the kernel has no driver for one.
    #[error(
        "this network namespace has no Wi-Fi interface ({0}). Check with `ip link` that the adapter's driver is \
         loaded, and run the command in the network namespace that has the interface"
    )]
    NoWifi(&'static str),
    /// The interface does not exist.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The interface is not a Wi-Fi interface.
    #[error("{name} is not a Wi-Fi interface; those of this network namespace: {others}")]
    NotWifi {
        /// The name.
        name: String,
        /// The Wi-Fi interfaces.
        others: String,
    },
    /// No interface is a client of an access point.
    #[error("{0}, not a station: run the command on a client of an access point")]
    NotStation(String),
    /// The station has no access point.
    #[error(
        "{0} is not associated with an access point: join a network, then run the command again"
    )]
    NotAssociated(String),
    /// The system refuses the socket.
    #[error("cannot open nl80211: {0}")]
    Open(#[source] io::Error),
    /// nl80211 did not answer in time.
    #[error("nl80211 did not answer within {} s", PATIENCE.as_secs())]
    Slow,
    /// Another error.
    #[error("nl80211: {0}")]
    Other(String),
}

impl ReadError {
    /// Whether a privilege is missing, so that the command exits with 77. Reading from
    /// nl80211 takes no privilege, but a sandbox may forbid its socket.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Open(error) if error.kind() == io::ErrorKind::PermissionDenied)
    }
}

impl From<WifiError> for ReadError {
    fn from(error: WifiError) -> Self {
        match error {
            WifiError::NoNl80211 => Self::NoWifi("the kernel has no nl80211"),
            WifiError::NotStation(kind) => {
                Self::NotStation(format!("the interface is of type {kind}"))
            }
            WifiError::Slow => Self::Slow,
            other => Self::Other(other.to_string()),
        }
    }
}

/// A client of nl80211 in the network namespace of the calling thread.
///
/// Order of calls: [`WifiReader::open`], [`WifiReader::stations`], then [`WifiReader::link`] as often as needed.
pub struct WifiReader {
    wifi: Wifi,
    runtime: Runtime,
}

impl WifiReader {
    /// Opens the socket.
    ///
    /// # Errors
    /// [`ReadError::Open`].
    pub fn open() -> Result<Self, ReadError> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().build().map_err(ReadError::Open)?;
        let wifi = runtime.block_on(async { Wifi::open() }).map_err(ReadError::Open)?;
        Ok(Self { wifi, runtime })
    }

    /// The indices of the stations of this network namespace. With a `name`, only the interface of that name is
    /// considered.
    ///
    /// # Errors
    /// [`ReadError`] if there is no station. The error gives the reason.
    pub fn stations(&self, name: Option<&str>) -> Result<Vec<u32>, ReadError> {
        if let Some(name) = name {
            Interface::find(name)?;
        }
        let answers = self.wait(self.wifi.list(Nl80211Command::GetInterface, None))?;
        stations(&answers, name)
    }

    /// The link of the station with this index. If the station has joined a network but the driver does not list
    /// the access point, all values of the access point are `None`.
    ///
    /// # Errors
    /// [`ReadError::NotAssociated`], or another [`ReadError`] if nl80211 does not report the link.
    pub fn link(&self, index: u32) -> Result<Link, ReadError> {
        let asked = async {
            let interface = self.wifi.interface(index).await?;
            let station = self.wifi.access_point(index).await?;
            // The channels of the interface's radio, with the driver's counters. A driver without a survey
            // answers with an error. The values of the survey are then unknown.
            let channels = self.wifi.list(Nl80211Command::GetSurvey, Some(index)).await;
            let channels = channels.unwrap_or_default();
            Ok((interface, station, channels))
        };
        let (interface, station, channels) = self.wait(asked)?;
        if station.is_none() && !is_joined(&interface)? {
            return Err(ReadError::NotAssociated(name_of(&interface).to_owned()));
        }
        Ok(Link::read(&interface, station.as_ref(), &channels))
    }

    fn wait<T>(&self, asked: impl Future<Output = Result<T, WifiError>>) -> Result<T, ReadError> {
        let answered = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
        Ok(answered.map_err(|_| ReadError::Slow)??)
    }
}

fn name_of(interface: &Nl80211Message) -> &str {
    let name = interface.attributes.iter().find_map(|attribute| match attribute {
        Nl80211Attr::IfName(name) => Some(name.as_str()),
        _ => None,
    });
    name.unwrap_or_default()
}

/// The stations among nl80211's interfaces. An entry without an index is a P2P device, which is not a network
/// interface.
fn stations(interfaces: &[Nl80211Message], name: Option<&str>) -> Result<Vec<u32>, ReadError> {
    let index = |interface: &Nl80211Message| {
        interface.attributes.iter().find_map(|attribute| match attribute {
            Nl80211Attr::IfIndex(index) => Some(*index),
            _ => None,
        })
    };
    let all: Vec<(u32, &str, Option<Nl80211InterfaceType>)> =
        interfaces.iter().filter_map(|one| Some((index(one)?, name_of(one), kind(one)))).collect();
    if all.is_empty() {
        return Err(ReadError::NoWifi("nl80211 lists none"));
    }
    let named = all.iter().filter(|(_, found, _)| name.is_none_or(|name| name == *found));
    let named: Vec<_> = named.collect();
    if let (Some(name), true) = (name, named.is_empty()) {
        let others: Vec<&str> = all.iter().map(|(_, found, _)| *found).collect();
        let (name, others) = (name.to_owned(), others.join(", "));
        return Err(ReadError::NotWifi { name, others });
    }
    let found = named.iter().filter(|(_, _, kind)| kind.is_some_and(is_station));
    let found: Vec<u32> = found.map(|(index, ..)| *index).collect();
    if found.is_empty() {
        let is = |(_, name, kind): &&(u32, &str, Option<Nl80211InterfaceType>)| {
            let kind = kind.map_or_else(|| "unknown".to_owned(), kind_words);
            format!("{name} is of type {kind}")
        };
        let all: Vec<String> = named.iter().map(is).collect();
        return Err(ReadError::NotStation(all.join(", ")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wl_nl80211::Nl80211Command;

    fn interface(index: u32, name: &str, kind: Nl80211InterfaceType) -> Nl80211Message {
        let attributes = vec![
            Nl80211Attr::IfIndex(index),
            Nl80211Attr::IfName(name.to_owned()),
            Nl80211Attr::IfType(kind),
        ];
        Nl80211Message { cmd: Nl80211Command::NewInterface, attributes }
    }

    #[test]
    fn stations_are_found_by_name_or_all() {
        let all = [
            interface(3, "wlan0", Nl80211InterfaceType::Station),
            interface(4, "hot0", Nl80211InterfaceType::Ap),
            interface(5, "wlan1", Nl80211InterfaceType::P2pClient),
        ];
        assert_eq!(stations(&all, None).unwrap(), [3, 5]);
        assert_eq!(stations(&all, Some("wlan1")).unwrap(), [5]);
        let said = |name| stations(&all, Some(name)).unwrap_err().to_string();
        assert!(
            said("hot0").starts_with("hot0 is of type AP, not a station: "),
            "{}",
            said("hot0")
        );
        let wired = said("eth0");
        assert!(wired.ends_with("those of this network namespace: wlan0, hot0, wlan1"), "{wired}");
        let only = stations(&all[1..2], None).unwrap_err().to_string();
        assert!(only.starts_with("hot0 is of type AP, not a station"), "{only}");
    }

    #[test]
    fn a_namespace_without_wi_fi_is_told_apart() {
        for name in [None, Some("eth0")] {
            let said = stations(&[], name).unwrap_err().to_string();
            assert!(said.starts_with("this network namespace has no Wi-Fi interface"), "{said}");
        }
        let device = Nl80211Message {
            cmd: Nl80211Command::NewInterface,
            attributes: vec![Nl80211Attr::IfType(Nl80211InterfaceType::P2pDevice)],
        };
        assert!(matches!(stations(&[device], None), Err(ReadError::NoWifi(_))));
    }
}
