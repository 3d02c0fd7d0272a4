//! Measures the server over loopback: goodput of one upload and of many at a time, and its largest resident memory.
//! `TUSD=PROGRAM` names a tusd that is measured beside it, in turns; `BASE=PROGRAM` names this bench of another commit,
//! whose server is measured too. `cargo bench -p wakeai-serve --bench serve -- [UPLOADSxKILOBYTES…]`; the files go
//! below the system's temporary directory (`TMPDIR`).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics or prints")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wakeai_serve::{Limits, ServeConfig, ServeEvent, run};

const CHUNK_BYTES: usize = 1 << 18;
/// The rounds of each server, an odd number; the median counts.
const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--serve") {
        return serve(Path::new(&arguments[at + 1]));
    }
    let parse = |argument: &String| {
        let (uploads, kilobytes) = argument.split_once('x')?;
        Some((uploads.parse().ok()?, kilobytes.parse().ok()?))
    };
    let mut sizes: Vec<(usize, usize)> = arguments.iter().filter_map(parse).collect();
    if sizes.is_empty() {
        sizes = vec![(1, 512_000), (8, 64_000), (200, 100), (200, 2_000), (200, 10_000)];
    }
    let mut servers = vec!["wakeai"];
    servers.extend(std::env::var_os("BASE").map(|_| "base"));
    servers.extend(std::env::var_os("TUSD").map(|_| "tusd"));
    println!(
        "{:<8} {:>8} {:>10} {:>10} {:>13} {:>12}",
        "server", "uploads", "kB each", "MB/s", "MB/s to disk", "memory MB"
    );
    for (uploads, kilobytes) in sizes {
        let mut rounds = vec![[const { Vec::new() }; 3]; servers.len()];
        for _ in 0..ROUNDS {
            for (server, rounds) in servers.iter().zip(&mut rounds) {
                let figures = round(server, uploads, kilobytes * 1000);
                rounds.iter_mut().zip(figures).for_each(|(rounds, figure)| rounds.push(figure));
            }
        }
        for (server, rounds) in servers.iter().zip(rounds) {
            let [rate, to_disk, memory] = rounds.map(median);
            println!(
                "{server:<8} {uploads:>8} {kilobytes:>10} {rate:>10.0} {to_disk:>13.0} {memory:>12.1}"
            );
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// This program as the server.
fn serve(directory: &Path) {
    let config = ServeConfig {
        directory: directory.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        tls: None,
        tokens: None,
        metrics: None,
        base: None,
        origins: Vec::new(),
        limits: Limits::default(),
    };
    run(config, std::future::pending(), |event| {
        if let ServeEvent::Listening(address) = event {
            println!("{address}");
        }
    })
    .unwrap();
}

/// The goodput in MB/s until the last answer, that until all is on disk, and the server's largest resident memory in MB.
/// Our server's last answer says that all is on disk. tusd leaves that to the kernel.
fn round(server: &str, uploads: usize, each: usize) -> [f64; 3] {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, address) = start(server, directory.path());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..uploads {
            scope.spawn(|| upload(address, each));
        }
    });
    let rate = || (uploads * each) as f64 * 1e-6 / start.elapsed().as_secs_f64();
    let answered = rate();
    nix::unistd::syncfs(File::open(directory.path()).unwrap()).unwrap();
    let to_disk = rate();
    let memory = resident(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    [answered, to_disk, memory]
}

fn start(server: &str, directory: &Path) -> (Child, SocketAddr) {
    if server == "tusd" {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(std::env::var_os("TUSD").unwrap());
        command.args(["-host", "127.0.0.1", "-base-path", "/files/", "-upload-dir"]).arg(directory);
        command.arg("-port").arg(free.port().to_string());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(free).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        return (child, free);
    }
    let program = match server {
        "base" => std::env::var_os("BASE").unwrap().into(),
        _ => std::env::current_exe().unwrap(),
    };
    let mut command = Command::new(program);
    command.arg("--serve").arg(directory).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().parse().unwrap())
}

/// Creates an upload and sends all of its bytes in one PATCH.
fn upload(address: SocketAddr, each: usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    let version = "Host: localhost\r\nTus-Resumable: 1.0.0";
    write!(stream, "POST /files/ HTTP/1.1\r\n{version}\r\nUpload-Length: {each}\r\n\r\n").unwrap();
    let answer = answer(&mut stream);
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    let location = location.unwrap();
    let path = location.find("/files/").map_or("", |at| &location[at..]);
    let kind = "Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0";
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\n{version}\r\n{kind}\r\nContent-Length: {each}\r\n\r\n"
    )
    .unwrap();
    let chunk: Vec<u8> = (0..CHUNK_BYTES).map(|at| (at * 31) as u8).collect();
    let mut left = each;
    while left > 0 {
        let count = left.min(chunk.len());
        stream.write_all(&chunk[..count]).unwrap();
        left -= count;
    }
    let answer = self::answer(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

/// The head of an answer; the answers here have no body.
fn answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// `VmHWM` of `proc_pid_status(5)`, in MB.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1.024e-3
}
