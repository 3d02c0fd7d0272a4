//! Servers that a test writes. Each request has a connection of its own.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::Digest as _;

/// A request. The names of its header fields are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FakeRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl FakeRequest {
    /// Reads the head of a request; `None` if the client closes the connection instead.
    fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let mut first = lines.first()?.split(' ').map(ToOwned::to_owned);
        let (method, target) = (first.next()?, first.next()?);
        let field = |line: &String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines[1..].iter().filter_map(field).collect();
        Some(Self { method, target, headers, body: Vec::new() })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn length(&self) -> u64 {
        self.get("content-length").map_or(0, |length| length.parse().unwrap())
    }
}

/// An answer without `Content-Length`, which is added.
#[derive(Clone, Debug)]
pub(crate) struct FakeAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl FakeAnswer {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Display) -> Self {
        self.headers.push((name, format!("{value}")));
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn send(&self, stream: &mut TcpStream, is_head: bool) {
        let mut text = format!("HTTP/1.1 {} Status\r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if self.status != 204 && !self.headers.iter().any(|(name, _)| *name == "Content-Length") {
            let _ = write!(text, "Content-Length: {}\r\n", self.body.len());
        }
        let mut bytes = text.into_bytes();
        bytes.extend(b"\r\n");
        if !is_head {
            bytes.extend(&self.body);
        }
        let _ = stream.write_all(&bytes); // the client may have gone
    }
}

/// A server. Its thread ends with the test.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<FakeRequest>>>,
}

impl Fake {
    /// A server that reads each request to its end before it answers.
    pub(crate) fn start(
        mut answer: impl FnMut(&FakeRequest) -> FakeAnswer + Send + 'static,
    ) -> Self {
        Self::raw(move |stream, request| {
            let mut body = vec![0; request.length() as usize];
            if stream.read_exact(&mut body).is_err() {
                return;
            }
            request.body = body;
            answer(request).send(stream.get_mut(), request.method == "HEAD");
        })
    }

    /// A server that gets each connection with the head of its request.
    pub(crate) fn raw(
        mut handle: impl FnMut(&mut BufReader<TcpStream>, &mut FakeRequest) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                if let Some(mut request) = FakeRequest::read(&mut stream) {
                    // Before the answer, which may end the test.
                    kept.lock().unwrap().push(request.clone());
                    handle(&mut stream, &mut request);
                }
            }
        });
        Self { address, log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far, without their bodies.
    pub(crate) fn requests(&self) -> Vec<FakeRequest> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|request| request.method == method).count()
    }
}

/// The files of a server that takes PUT.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(pub(crate) Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Files {
    pub(crate) fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(path).cloned()
    }

    pub(crate) fn set(&self, path: &str, bytes: &[u8]) {
        self.0.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
    }

    /// Answers as a plain server for PUT.
    pub(crate) fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        match (request.method.as_str(), self.get(&request.target)) {
            ("PUT", _) => {
                self.set(&request.target, &request.body);
                FakeAnswer::new(201)
            }
            ("GET" | "HEAD", Some(bytes)) => {
                FakeAnswer::new(200).with("Content-Length", bytes.len()).body(bytes)
            }
            ("GET" | "HEAD", None) => FakeAnswer::new(404),
            _ => FakeAnswer::new(405),
        }
    }
}

/// A server for tus with one upload at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tus {
    pub(crate) extensions: &'static str,
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) length: Arc<Mutex<u64>>,
    /// Whether the server compares the checksums of pieces.
    pub(crate) compares: bool,
    pub(crate) gives_back: bool,
    pub(crate) most: Option<u64>,
}

impl Tus {
    pub(crate) fn answer(&self, request: &FakeRequest) -> FakeAnswer {
        let mut bytes = self.bytes.lock().unwrap();
        let version = FakeAnswer::new(204).with("Tus-Resumable", "1.0.0");
        let status = |status| FakeAnswer { status, ..version.clone() };
        match request.method.as_str() {
            "OPTIONS" => {
                let mut answer = version
                    .with("Tus-Version", "0.2.2,1.0.0")
                    .with("Tus-Extension", self.extensions);
                if let Some(most) = self.most {
                    answer = answer.with("Tus-Max-Size", most);
                }
                answer.with("Tus-Checksum-Algorithm", "md5,sha1,sha256")
            }
            "POST" => {
                bytes.clear();
                *self.length.lock().unwrap() =
                    request.get("upload-length").unwrap().parse().unwrap();
                status(201).with("Location", "/files/1")
            }
            "HEAD" => status(200)
                .with("Upload-Offset", bytes.len())
                .with("Upload-Length", *self.length.lock().unwrap()),
            "PATCH" if request.get("upload-offset") != Some(&bytes.len().to_string()) => {
                status(409)
            }
            "PATCH" if self.compares && !fits(request) => status(460),
            "PATCH" => {
                bytes.extend(&request.body);
                version.with("Upload-Offset", bytes.len())
            }
            "GET" if self.gives_back => status(200).body(bytes.clone()),
            "DELETE" => {
                bytes.clear();
                version
            }
            _ => status(404),
        }
    }
}

fn fits(request: &FakeRequest) -> bool {
    let digest = BASE64.encode(sha2::Sha256::digest(&request.body));
    request.get("upload-checksum").is_none_or(|given| given == format!("sha256 {digest}"))
}
