//! The two text formats that Prometheus reads.

use http::HeaderValue;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;

use super::page::Page;

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Text,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The format that a request's `Accept` prefers. This is OpenMetrics if its weight is at least that of plain
    /// text (RFC 9110 section 12.5.1), and plain text otherwise.
    pub fn accepted<'a>(accept: impl IntoIterator<Item = &'a HeaderValue>) -> Self {
        let (mut open, mut plain) = (0.0_f32, None);
        let lines = accept.into_iter().filter_map(|line| line.to_str().ok());
        for range in lines.flat_map(|line| line.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let (mut weight, mut is_known) = (1.0_f32, true);
            for parameter in parts {
                match parameter.split_once('=') {
                    Some(("q", text)) => weight = text.parse().unwrap_or(0.0),
                    Some(("version", text)) => {
                        is_known = matches!(text, "1.0.0" | "0.0.1" | "0.0.4");
                    }
                    _ => {}
                }
            }
            match media.as_str() {
                "application/openmetrics-text" if is_known => open = open.max(weight),
                "text/plain" if is_known => plain = Some(plain.unwrap_or(0.0_f32).max(weight)),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain.unwrap_or(0.0) { Self::OpenMetrics } else { Self::Text }
    }

    /// The media type of an answer in this format.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Page {
    /// Writes the page in this format.
    pub fn text(&self, format: Format) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut written = String::new();
        match format {
            Format::OpenMetrics => text::encode(&mut written, &registry),
            Format::Text => prometheus_text::encode(&mut written, &registry),
        }
        .expect("a String takes every text");
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Histogram, Unit};

    fn page() -> Page {
        let mut page = Page::new();
        let labels = vec![("interface", "a\\b\"c".to_owned())];
        page.info("x", "What it is.", Some(labels));
        page.counter("x_sent", Unit::Bytes, "Bytes that were sent.").is(7);
        let refused = page.counter("x_refused", Unit::None, "Refused, by reason.");
        refused.each("reason", [("old", 1), ("new", 0)]);
        page.gauge("x_delay", Unit::Seconds, "The delay.").is_real(Some(0.25));
        page.gauge("x_unknown", Unit::Seconds, "Not known.").is_real(None);
        let rtt = Histogram::new([0.5]);
        rtt.observe(0.125);
        page.histogram("x_rtt", Unit::Seconds, "Round trips.", &rtt);
        page
    }

    #[test]
    fn the_text_format_names_samples_in_its_metadata() {
        assert_eq!(
            page().text(Format::Text),
            "# HELP x_info What it is.\n# TYPE x_info gauge\n\
             x_info{interface=\"a\\\\b\\\"c\"} 1\n\
             # HELP x_sent_bytes_total Bytes that were sent.\n# TYPE x_sent_bytes_total counter\n\
             x_sent_bytes_total 7\n\
             # HELP x_refused_total Refused, by reason.\n# TYPE x_refused_total counter\n\
             x_refused_total{reason=\"old\"} 1\nx_refused_total{reason=\"new\"} 0\n\
             # HELP x_delay_seconds The delay.\n# TYPE x_delay_seconds gauge\n\
             x_delay_seconds 0.25\n\
             # HELP x_unknown_seconds Not known.\n# TYPE x_unknown_seconds gauge\n\
             # HELP x_rtt_seconds Round trips.\n# TYPE x_rtt_seconds histogram\n\
             x_rtt_seconds_bucket{le=\"0.5\"} 1\nx_rtt_seconds_bucket{le=\"+Inf\"} 1\n\
             x_rtt_seconds_sum 0.125\nx_rtt_seconds_count 1\n"
        );
    }

    #[test]
    fn openmetrics_names_families_and_units_and_ends_with_a_mark() {
        let text = page().text(Format::OpenMetrics);
        assert!(text.starts_with("# HELP x What it is.\n# TYPE x info\nx_info{"), "{text}");
        assert!(
            text.contains("# TYPE x_sent_bytes counter\n# UNIT x_sent_bytes bytes\n"),
            "{text}"
        );
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }

    #[test]
    fn plain_text_is_the_default_and_openmetrics_is_given_to_those_who_prefer_it() {
        let format = |accept: &[&str]| {
            let lines: Vec<_> =
                accept.iter().map(|line| HeaderValue::from_str(line).unwrap()).collect();
            Format::accepted(&lines)
        };
        let prometheus = "application/openmetrics-text;version=1.0.0,\
                          application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for accept in [&[prometheus][..], &["text/plain;q=0.5", "application/openmetrics-text"]] {
            assert_eq!(format(accept), Format::OpenMetrics, "{accept:?}");
        }
        for accept in [
            &[][..],
            &["*/*"],
            &["text/plain"],
            &["application/openmetrics-text;q=0"],
            &["application/openmetrics-text;q=x"],
            &["application/openmetrics-text;version=2.0.0"],
            &["application/openmetrics-text;q=0.3,text/plain;q=0.5"],
            &[";;,,q=;version"],
        ] {
            assert_eq!(format(accept), Format::Text, "{accept:?}");
        }
    }
}
