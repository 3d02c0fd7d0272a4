//! Reads and writes the keys of the file.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strum::VariantArray as _;
use wakeai_control::LawConfig;
use wakeai_control::laws::LawPlace;
use wakeai_settings::{Field, Fields, Node, Origin, Problems, Source, Table, Value};
use wakeai_units::{Duration, Rate};

use super::{
    AUTO, AccessPoint, Api, Config, ConfigError, Datagrams, Group, Log, LogFormat, Presence, Queue,
};

/// The value of a required key that is missing or refused. With it the other keys can still be used.
const PLACEHOLDER: &str = "none";
/// What the key of a rate allows.
const RATE: &str = "a rate above zero, such as \"54Mbit/s\"";

/// The usable part of a configuration, and the problems of the rest.
#[derive(Debug)]
pub struct Examined {
    /// The usable part of the configuration, with defaults for the rest. It is `None` where the file cannot be read
    /// or is no TOML.
    pub config: Option<Config>,
    /// The reason why the configuration cannot be used as it is.
    pub error: Option<ConfigError>,
    /// The keys with problems.
    refused: Vec<String>,
}

impl Examined {
    /// Reads and examines the file at `path`.
    pub fn load(path: &Path) -> Self {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, Some(path)),
            Err(source) => {
                let error = ConfigError::Read { path: path.to_owned(), source };
                Self { config: None, error: Some(error), refused: Vec::new() }
            }
        }
    }

    pub(super) fn parse(text: &str, file: Option<&Path>) -> Self {
        let source = Source::new("configuration", text, file.map(Path::to_owned));
        let root = match source.parse() {
            Ok(root) => root,
            Err(refused) => {
                return Self { config: None, error: Some(refused.into()), refused: Vec::new() };
            }
        };
        let problems = Problems::default();
        let config = Config::read(Fields::new(&root, Origin::START, "", &problems));
        let findings = problems.check().err();
        let keys = findings.iter().flatten().map(|finding| finding.key.clone()).collect();
        let error = findings.map(|findings| source.refuse(findings).into());
        Self { config: Some(config), error, refused: keys }
    }

    pub(super) fn into_config(self) -> Result<Config, ConfigError> {
        match (self.error, self.config) {
            (None, Some(config)) => Ok(config),
            (error, _) => Err(error.expect("a configuration that cannot be used has a problem")),
        }
    }

    /// Whether this dotted key has no problem: it has a value from the file, or its default.
    pub fn is_good(&self, key: &str) -> bool {
        !self.refused.iter().any(|refused| {
            // A law with a wrong parameter is left out as a whole.
            let refused = if refused.starts_with("law.") { "law" } else { refused.as_str() };
            let rest = key.strip_prefix(refused);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl Config {
    /// Reads the keys. A key that is refused has its default.
    fn read(mut fields: Fields<'_>) -> Self {
        const INTERFACE: &str = "an interface's name of 1 to 15 bytes such as \"wlan0\"";
        let interface = fields.require("interface", INTERFACE);
        let interface = interface.and_then(|field| field.text_if(INTERFACE, is_interface));
        let key_file = fields.require("key_file", "the path of the file with the group key");
        let key_file = key_file.and_then(|field| text(&field));
        let mut config =
            Self::new(interface.unwrap_or(PLACEHOLDER), key_file.unwrap_or(PLACEHOLDER));
        config.station = fields.read("station", |field| {
            let number = match &field.node.value {
                Value::Integer(number) => u64::try_from(*number).ok(),
                Value::Other(digits) => digits.parse().ok(),
                _ => None,
            };
            field.or_refuse(number, || format!("an integer from 0 to {}", u64::MAX))
        });
        let address = "six octets of a station's address such as \"02:00:5e:10:00:01\"";
        config.bssid = automatic(&mut fields, "bssid", address, |_| true);
        config.link_rate = automatic(&mut fields, "link_rate", RATE, |rate| *rate > Rate::ZERO);
        config.max = fields.read("max", rate);
        config.max_down = fields.read("max_down", rate);
        config.reserve = fields.read("reserve", rate);
        config.metrics = fields.read("metrics", |field| {
            let allowed = "an address of the loopback interface such as \"127.0.0.1:9719\"";
            field.or_refuse(field.parsed(), || allowed.to_owned())
        });
        read_table(&mut fields, "presence", |table| config.presence = presence(table));
        read_table(&mut fields, "access_point", |table| config.access_point = access_point(table));
        if let Some(law) = fields.read("law", |field| LawConfig::read(field, LawPlace::Agent)) {
            config.law = law;
        }
        read_table(&mut fields, "datagrams", |table| config.datagrams = datagrams(table));
        read_table(&mut fields, "api", |table| config.api = api(table));
        read_table(&mut fields, "log", |table| config.log = log(table));
        fields.finish();
        config
    }

    /// The content of a file. [`Config::parse`] reads the same configuration from it.
    ///
    /// # Errors
    /// [`ConfigError`] if a value is out of the range that its key allows.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let path = |path: &PathBuf| match path.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(ConfigError::Path(path.clone())),
        };
        let mut root = Table::default();
        put(&mut root, "interface", Some(self.interface.clone()));
        put(&mut root, "key_file", Some(path(&self.key_file)?));
        put_value(&mut root, "station", self.station.map(|id| Value::Other(id.to_string())));
        put(&mut root, "bssid", Some(or_auto(self.bssid)));
        put(&mut root, "link_rate", Some(or_auto(self.link_rate)));
        put(&mut root, "max", self.max);
        put(&mut root, "max_down", self.max_down);
        put(&mut root, "reserve", self.reserve);
        put(&mut root, "metrics", self.metrics);
        let Presence { port, broadcast, clock_tolerance } = &self.presence;
        let mut presence = Table::default();
        put_value(&mut presence, "port", Some(Value::Integer((*port).into())));
        put(&mut presence, "broadcast", Some(or_auto(*broadcast)));
        put(&mut presence, "clock_tolerance", *clock_tolerance);
        let AccessPoint { buffer, basic_rate, reservable_percent } = &self.access_point;
        let mut access_point = Table::default();
        put_value(&mut access_point, "buffer", Some(Value::Integer((*buffer).into())));
        put(&mut access_point, "basic_rate", Some(*basic_rate));
        let percent = Value::Integer((*reservable_percent).into());
        put_value(&mut access_point, "reservable_percent", Some(percent));
        let mut law = Table::default();
        put(&mut law, "name", Some(self.law_name()));
        for (key, value) in self.law.iter().flat_map(LawConfig::parameters) {
            put_value(&mut law, key, Some(value));
        }
        let mut datagrams = Table::default();
        put(&mut datagrams, "queue", Some(self.datagrams.queue.name()));
        let mut api = Table::default();
        put(&mut api, "socket", self.api.socket.as_ref().map(path).transpose()?);
        let group = self.api.group.as_ref().map(|group| match group {
            Group::Id(id) => Value::Integer((*id).into()),
            Group::Name(name) => Value::String(name.clone()),
        });
        put_value(&mut api, "group", group);
        let mut log = Table::default();
        put(&mut log, "format", Some(self.log.format.name()));
        put(&mut log, "level", Some(&self.log.level));
        let tables = [
            ("presence", presence),
            ("access_point", access_point),
            ("law", law),
            ("datagrams", datagrams),
            ("api", api),
            ("log", log),
        ];
        for (key, table) in tables {
            put_value(&mut root, key, Some(Value::Table(table)));
        }
        let text = wakeai_settings::to_toml(&root);
        Self::parse(&text).map(|_| text)
    }
}

/// The text of a value that the agent finds itself where none is stated.
fn or_auto(stated: Option<impl Display>) -> String {
    stated.map_or_else(|| AUTO.to_owned(), |stated| stated.to_string())
}

fn put(table: &mut Table, key: &str, value: Option<impl Display>) {
    put_value(table, key, value.map(|value| Value::String(value.to_string())));
}

fn put_value(table: &mut Table, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        table.insert(key, Node::new(Origin::START, value));
    }
}

/// Reads the table `key` with `read`, if it is there.
fn read_table<'a>(fields: &mut Fields<'a>, key: &'static str, read: impl FnOnce(&mut Fields<'a>)) {
    if let Some(mut table) = fields.read(key, Field::table) {
        read(&mut table);
        table.finish();
    }
}

fn presence(fields: &mut Fields<'_>) -> Presence {
    let tolerances = Duration::from_millis(1)..=Duration::from_secs(60);
    let default = Presence::default();
    Presence {
        port: fields.read_or("port", default.port, |field| field.integer(1..=u16::MAX)),
        broadcast: automatic(fields, "broadcast", "an IPv4 address", |_| true),
        clock_tolerance: fields.read("clock_tolerance", |field| field.duration(tolerances)),
    }
}

fn access_point(fields: &mut Fields<'_>) -> AccessPoint {
    let default = AccessPoint::default();
    // 1 Mbit/s is the lowest rate of 802.11, and 54 Mbit/s the highest of 802.11a and g.
    let basic_rates = Rate::from_mbps(1)..=Rate::from_mbps(54);
    AccessPoint {
        buffer: fields.read_or("buffer", default.buffer, |field| field.integer(1..=1_000_000)),
        basic_rate: fields
            .read_or("basic_rate", default.basic_rate, |field| field.rate(basic_rates)),
        reservable_percent: fields.read_or(
            "reservable_percent",
            default.reservable_percent,
            |field| field.integer(0..=95),
        ),
    }
}

fn datagrams(fields: &mut Fields<'_>) -> Datagrams {
    let queues: Vec<_> = Queue::VARIANTS.iter().map(|queue| (queue.name(), *queue)).collect();
    Datagrams { queue: fields.read_or("queue", Queue::default(), |field| field.choice(&queues)) }
}

fn api(fields: &mut Fields<'_>) -> Api {
    // The kernel's `sun_path` has 108 bytes, and the last one is a zero byte (unix(7)).
    let allowed = "an absolute path of at most 107 bytes";
    let is_socket = |path: &str| Path::new(path).is_absolute() && path.len() <= 107;
    Api {
        socket: fields.read("socket", |field| field.text_if(allowed, is_socket).map(PathBuf::from)),
        group: fields.read("group", |field| {
            let group = match &field.node.value {
                Value::Integer(id) => u32::try_from(*id).ok().map(Group::Id),
                Value::String(name) => Some(Group::Name(name.clone())),
                _ => None,
            };
            field.or_refuse(group, || "a group's name or number".to_owned())
        }),
    }
}

fn log(fields: &mut Fields<'_>) -> Log {
    let formats: Vec<_> =
        LogFormat::VARIANTS.iter().map(|format| (format.name(), *format)).collect();
    let default = Log::default();
    Log {
        format: fields.read_or("format", default.format, |field| field.choice(&formats)),
        level: fields
            .read("level", |field| text(field).map(str::to_owned))
            .unwrap_or(default.level),
    }
}

fn text<'a>(field: &Field<'a>) -> Option<&'a str> {
    field.text_if("a text in quotes", |_| true)
}

fn rate(field: &Field<'_>) -> Option<Rate> {
    field.or_refuse(field.parsed().filter(|rate| *rate > Rate::ZERO), || RATE.to_owned())
}

/// Reads a value that the agent finds itself where the file has none or `"auto"`.
fn automatic<T: FromStr>(
    fields: &mut Fields<'_>,
    key: &'static str,
    allowed: &str,
    is_allowed: impl FnOnce(&T) -> bool,
) -> Option<T> {
    let given = fields.get(key).filter(|field| field.node.as_str() != Some(AUTO));
    given.and_then(|field| {
        field.or_refuse(field.parsed().filter(is_allowed), || format!("{allowed}, or \"{AUTO}\""))
    })
}

/// Whether an interface can have this name. The rules are those of the kernel's `dev_valid_name`.
fn is_interface(name: &str) -> bool {
    let fits = (1..=15).contains(&name.len()) && name != "." && name != "..";
    fits && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
}
