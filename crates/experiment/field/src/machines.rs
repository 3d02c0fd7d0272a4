//! The machines file: which machine is which station of the scenario, and which is the server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use wakeai_api::config::Bssid;
use wakeai_settings::{Field, Fields, Origin, Problems, Source};
use wakeai_units::Rate;

use crate::error::FieldError;

/// The name of the server in the file.
pub(crate) const SERVER: &str = "server";
/// The port of traffic, which is iperf3's: many firewalls know it.
const PORT: u16 = 5_201;
/// The most machines.
const MOST: usize = 500;

/// The content of a machines file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// The port at which the server, and the receiving station of a flow between stations, accepts TCP and UDP.
    pub port: u16,
    /// The machines, in the order of the file.
    pub machines: Vec<Machine>,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The station's name, or `server`.
    pub station: String,
    /// Where it is.
    pub place: Place,
    /// The interface of the experiment; `None`: the one that leads to the server.
    pub interface: Option<String>,
    /// The address of that interface; the server has to name its own.
    pub address: Option<IpAddr>,
    /// The program `wakeai` on the machine.
    pub program: String,
    /// The access point's address, where the driver does not tell it.
    pub bssid: Option<Bssid>,
    /// The address that reaches all stations, where the interface has none.
    pub broadcast: Option<Ipv4Addr>,
    /// The PHY rate, where the driver does not tell it.
    pub link_rate: Option<Rate>,
}

/// How a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// This machine.
    Local,
    /// A name of OpenSSH: a host, `user@host`, or a `Host` of its configuration.
    Ssh(String),
    /// The serial number of an Android device.
    Adb(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Ssh(name) => f.write_str(name),
            Self::Adb(serial) => write!(f, "adb:{serial}"),
        }
    }
}

impl Place {
    /// Reads the place. A name that begins with a hyphen would be an option of ssh or adb, and is none.
    fn parse(text: &str) -> Option<Self> {
        let is_name = |name: &str| {
            let fits =
                |byte: u8| byte.is_ascii_graphic() && !b"'\"`\\$;&|<>(){}*?!#".contains(&byte);
            !name.is_empty() && !name.starts_with('-') && name.bytes().all(fits)
        };
        match text.strip_prefix("adb:") {
            _ if text == "local" => Some(Self::Local),
            Some(serial) => is_name(serial).then(|| Self::Adb(serial.to_owned())),
            None => is_name(text).then(|| Self::Ssh(text.to_owned())),
        }
    }
}

#[cfg(test)]
impl Machine {
    /// This machine, as a station.
    pub(crate) fn local() -> Self {
        Self {
            station: "tablet".to_owned(),
            place: Place::Local,
            interface: None,
            address: None,
            program: "wakeai".to_owned(),
            bssid: None,
            broadcast: None,
            link_rate: None,
        }
    }
}

impl Machines {
    /// A text that is equal for two files exactly if they name the same machines in the same way.
    pub(crate) fn identity(&self) -> String {
        let or = |text: Option<String>| text.unwrap_or_default();
        let machines = self.machines.iter().map(|one| {
            let Machine {
                station,
                place,
                interface,
                address,
                program,
                bssid,
                broadcast,
                link_rate,
            } = one;
            [
                station.clone(),
                place.to_string(),
                or(interface.clone()),
                or(address.map(|address| address.to_string())),
                program.clone(),
                or(bssid.map(|bssid| bssid.to_string())),
                or(broadcast.map(|broadcast| broadcast.to_string())),
                or(link_rate.map(|rate| rate.to_string())),
            ]
            .join("\n")
        });
        format!("{}\n{}", self.port, machines.collect::<Vec<_>>().join("\n\n"))
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// [`FieldError::Unreadable`], or [`FieldError::Refused`] with every unknown key and every value that is out of range.
    pub fn load(path: &Path) -> Result<Self, FieldError> {
        let unreadable = |source| FieldError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::read(&Source::new("machines", &text, Some(path.to_owned())))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`FieldError::Refused`].
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        Self::read(&Source::new("machines", text, None))
    }

    fn read(source: &Source) -> Result<Self, FieldError> {
        let (root, problems) = (source.parse()?, Problems::default());
        let mut fields = Fields::new(&root, Origin::START, "", &problems);
        let port = fields.read_or("port", PORT, |field| field.integer(1_024..=65_535));
        let tables =
            fields.require("machines", "a [[machines]] for the server and for each station");
        let tables = tables.map(|field| field.tables(MOST)).unwrap_or_default();
        let machines: Vec<(Origin, Machine)> =
            tables.into_iter().filter_map(|table| Some((table.origin, machine(table)?))).collect();
        for (index, (origin, one)) in machines.iter().enumerate() {
            let mut before = machines[..index].iter().map(|(_, other)| other);
            if before.any(|other| other.station == one.station) {
                let found = format!("a second machine for \"{}\"", one.station);
                problems.add(*origin, "machines.station", found, "one machine for each station");
            }
            let mut before = machines[..index].iter().map(|(_, other)| other);
            if let Some(other) = before.find(|other| other.place == one.place) {
                let found = format!("\"{}\", which is {}, too", one.place, other.station);
                problems.add(*origin, "machines.machine", found, "a machine of its own for each");
            }
        }
        fields.finish();
        problems.check().map_err(|findings| source.refuse(findings))?;
        Ok(Self { port, machines: machines.into_iter().map(|(_, machine)| machine).collect() })
    }

    /// The machines of the server and of these stations, in their order.
    ///
    /// # Errors
    ///
    /// [`FieldError::Machines`] names the stations without a machine, and the machines without a station.
    pub fn of_stations(&self, stations: &[String]) -> Result<Vec<&Machine>, FieldError> {
        let wanted: Vec<&str> =
            std::iter::once(SERVER).chain(stations.iter().map(String::as_str)).collect();
        let find = |name: &&str| self.machines.iter().find(|machine| machine.station == **name);
        let missing: Vec<&str> =
            wanted.iter().copied().filter(|name| find(name).is_none()).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(FieldError::Machines(format!("no [[machines]] has station = {missing}")));
        }
        let strange = self.machines.iter().filter(|one| !wanted.contains(&one.station.as_str()));
        let strange: Vec<&str> = strange.map(|machine| machine.station.as_str()).collect();
        if !strange.is_empty() {
            return Err(FieldError::Machines(format!(
                "{} is no station of the scenario, which has {}",
                strange.join(", "),
                wanted.join(", ")
            )));
        }
        let found: Vec<&Machine> = wanted.iter().filter_map(find).collect();
        if found[0].address.is_none() {
            return Err(FieldError::Machines(
                "the server needs `address`, to which the stations connect".to_owned(),
            ));
        }
        Ok(found)
    }
}

fn machine(mut fields: Fields<'_>) -> Option<Machine> {
    const STATION: &str = "\"server\", or the name of a station";
    const PLACE: &str = "a name of OpenSSH, \"adb:SERIAL\", or \"local\"";
    const INTERFACE: &str = "the name of an interface, such as \"wlan0\"";
    const PROGRAM: &str = "the path of wakeai on the machine";
    let named = |field: &Field<'_>, allowed: &str| {
        let fits = |text: &str| (1..16).contains(&text.len()) && !text.contains(['/', ' ']);
        field.text_if(allowed, fits).map(str::to_owned)
    };
    let station = fields.require("station", STATION);
    let fits = |name: &str| name == SERVER || wakeai_settings::is_name(name);
    let station = station.and_then(|field| field.text_if(STATION, fits));
    let place = fields.require("machine", PLACE).and_then(|field| {
        let place = field.node.as_str().and_then(Place::parse);
        field.or_refuse(place, || PLACE.to_owned())
    });
    let machine = Machine {
        interface: fields.read("interface", |field| named(field, INTERFACE)),
        address: fields.read("address", |field| {
            let address = field.node.as_str().and_then(|text| text.parse().ok());
            field.or_refuse(address, || "an IP address".to_owned())
        }),
        program: fields.read_or("program", "wakeai".to_owned(), |field| {
            let fits =
                |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains('\0');
            field.text_if(PROGRAM, fits).map(str::to_owned)
        }),
        bssid: fields.read("bssid", |field| {
            let bssid = field.node.as_str().and_then(|text| text.parse().ok());
            field.or_refuse(bssid, || {
                "the address of an access point, such as \"02:00:00:00:00:01\"".to_owned()
            })
        }),
        broadcast: fields.read("broadcast", |field| {
            let address = field.node.as_str().and_then(|text| text.parse().ok());
            field.or_refuse(address, || "an IPv4 address".to_owned())
        }),
        link_rate: fields
            .read("link_rate", |field| field.rate(Rate::from_bps(1)..=Rate::from_mbps(1_000_000))),
        station: String::new(),
        place: Place::Local,
    };
    fields.finish();
    Some(Machine { station: station?.to_owned(), place: place?, ..machine })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[[machines]]\nstation = \"server\"\nmachine = \"local\"\naddress = \"192.0.2.1\"\n\
                       [[machines]]\nstation = \"tablet\"\nmachine = \"root@tablet.lan\"\ninterface = \"wlan0\"\n";

    fn said(text: &str) -> String {
        Machines::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_file_says_which_machine_is_which_station() {
        let machines = Machines::parse(TWO).unwrap();
        assert_eq!(machines.port, 5_201);
        let all = machines.of_stations(&["tablet".to_owned()]).unwrap();
        assert_eq!(all[0].place, Place::Local);
        assert_eq!(
            (all[1].place.to_string().as_str(), all[1].program.as_str()),
            ("root@tablet.lan", "wakeai")
        );
        assert_eq!(all[1].interface.as_deref(), Some("wlan0"));
        let of = |stations: &[&str]| {
            let stations: Vec<String> = stations.iter().map(|one| (*one).to_owned()).collect();
            machines.of_stations(&stations).unwrap_err().to_string()
        };
        assert!(
            of(&["tablet", "phone"]).ends_with("has station = phone"),
            "{}",
            of(&["tablet", "phone"])
        );
        assert!(of(&[]).contains("tablet is no station of the scenario"), "{}", of(&[]));
        let without = TWO.replace("address = \"192.0.2.1\"\n", "");
        let without = Machines::parse(&without).unwrap();
        let error = without.of_stations(&["tablet".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("the server needs `address`"), "{error}");
    }

    #[test]
    fn places_are_names_and_never_options() {
        for (text, place) in [
            ("local", Some(Place::Local)),
            ("a-host", Some(Place::Ssh("a-host".to_owned()))),
            ("adb:0123", Some(Place::Adb("0123".to_owned()))),
            ("-oProxyCommand=x", None),
            ("adb:-x", None),
            ("adb:", None),
            ("a b", None),
            ("$(x)", None),
            ("", None),
        ] {
            assert_eq!(Place::parse(text), place, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let twice = TWO.replace("\"tablet\"", "\"server\"");
        assert!(said(&twice).contains("a second machine for \"server\""), "{}", said(&twice));
        let same = TWO.replace("root@tablet.lan", "local");
        assert!(said(&same).contains("which is server, too"), "{}", said(&same));
        let unknown = TWO.replace("interface", "interfaces");
        assert!(said(&unknown).contains("an unknown key"), "{}", said(&unknown));
        assert!(said("").contains("machines"), "{}", said(""));
        assert!(said(&TWO.replace("192.0.2.1", "here")).contains("an IP address"));
    }
}
