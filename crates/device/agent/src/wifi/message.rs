//! Messages of nl80211. Only the attributes that this crate needs are parsed.
//!
//! If one attribute has an unexpected length, the parser of wl-nl80211 refuses the whole message or panics.
//! Therefore the parser gets one attribute or field at a time, and gets only the attributes that this crate needs.
//! An attribute that the parser refuses counts as absent.

use futures_util::StreamExt as _;
use wl_nl80211::packet_core::{
    DecodeError, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload, NlaBuffer,
    NlasIterator, Parseable, ParseableParametrized,
};
use wl_nl80211::packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use wl_nl80211::{
    Nl80211Attr, Nl80211Command, Nl80211Handle, Nl80211Message, Nl80211StationInfo,
    Nl80211SurveyInfo,
};

use super::WifiError;

// `enum nl80211_attrs` of include/uapi/linux/nl80211.h.
pub(super) const IFINDEX: u16 = 3;
pub(super) const IFNAME: u16 = 4;
pub(super) const IFTYPE: u16 = 5;
pub(super) const MAC: u16 = 6;
pub(super) const STA_INFO: u16 = 21;
pub(super) const WIPHY_FREQ: u16 = 38;
pub(super) const SSID: u16 = 52;
pub(super) const SURVEY_INFO: u16 = 84;
pub(super) const CHANNEL_WIDTH: u16 = 159;

/// A request, or an answer with the attributes that this crate needs.
#[derive(Debug)]
pub(super) struct Message(Nl80211Message);

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        Nl80211Message::family_name()
    }

    fn version(&self) -> u8 {
        self.0.version()
    }

    fn command(&self) -> u8 {
        self.0.command()
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.0.buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.0.emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Self, DecodeError> {
        Ok(Self(Nl80211Message { cmd: header.cmd.into(), attributes: attributes(bytes) }))
    }
}

/// Parses the attributes that this crate needs.
pub(super) fn attributes(bytes: &[u8]) -> Vec<Nl80211Attr> {
    let all = NlasIterator::new(bytes).map_while(Result::ok);
    all.filter_map(|attribute| match attribute.kind() {
        STA_INFO => Some(Nl80211Attr::StationInfo(fields::<Nl80211StationInfo>(attribute.value()))),
        SURVEY_INFO => {
            Some(Nl80211Attr::SurveyInfo(fields::<Nl80211SurveyInfo>(attribute.value())))
        }
        IFINDEX | IFNAME | IFTYPE | MAC | WIPHY_FREQ | SSID | CHANNEL_WIDTH => {
            Nl80211Attr::parse(&attribute).ok()
        }
        _ => None,
    })
    .collect()
}

fn fields<T>(bytes: &[u8]) -> Vec<T>
where
    T: for<'a> Parseable<NlaBuffer<&'a [u8]>>,
{
    let all = NlasIterator::new(bytes).map_while(Result::ok);
    all.filter_map(|field| T::parse(&field).ok()).collect()
}

/// Sends a request and returns all messages of the answer. An error of a dump is not returned: the kernel reports it
/// in the dump's last message, and netlink-proto does not show it.
pub(super) async fn ask(
    handle: &Nl80211Handle,
    cmd: Nl80211Command,
    attributes: Vec<Nl80211Attr>,
    is_dump: bool,
) -> Result<Vec<Nl80211Message>, WifiError> {
    let question = Message(Nl80211Message { cmd, attributes });
    let mut question = NetlinkMessage::from(GenlMessage::from_payload(question));
    question.header.flags = NLM_F_REQUEST | if is_dump { NLM_F_DUMP } else { 0 };
    let mut handle = handle.handle.clone();
    // The handle first asks for the number of the generic netlink family nl80211. This request fails if the
    // kernel has no nl80211.
    let asked = handle.request(question).await;
    let mut answers = std::pin::pin!(asked.map_err(|_| WifiError::NoNl80211)?);
    let mut messages = Vec::new();
    while let Some(answer) = answers.next().await {
        match answer.map_err(|error| WifiError::NotWifi(error.to_string()))?.payload {
            NetlinkPayload::InnerMessage(answer) => messages.push(answer.payload.0),
            NetlinkPayload::Error(error) => return Err(WifiError::NotWifi(error.to_string())),
            _ => {}
        }
    }
    Ok(messages)
}
