// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "options.h"

#include "ns3/core-module.h"

#include <cstdlib>
#include <iostream>

namespace
{

void
Refuse(const std::string& message)
{
    std::cerr << "wakeai-ns3: " << message << std::endl;
    std::exit(2);
}

void
Check(const Options& o)
{
    if (o.standard != "g" && o.standard != "n" && o.standard != "ac")
        Refuse("--standard is g, n or ac, not " + o.standard);
    if (o.traffic != "tcp" && o.traffic != "udp")
        Refuse("--traffic is tcp or udp, not " + o.traffic);
    if (o.direction != "up" && o.direction != "down")
        Refuse("--direction is up or down, not " + o.direction);
    if (o.congestion != "cubic" && o.congestion != "rfc-cubic" && o.congestion != "reno")
        Refuse("--congestion is cubic, rfc-cubic or reno, not " + o.congestion);
    if (o.traffic == "udp" && o.direction == "down")
        Refuse("--traffic=udp saturates the uplink: --direction=up");
    if (o.topology != "equal" && o.topology != "hidden" && o.topology != "row")
        Refuse("--topology is equal, hidden or row, not " + o.topology);
    if (o.stations < 1 || o.stations > 200)
        Refuse("--stations is 1 to 200");
}

} // namespace

Options
ReadOptions(int argc, char** argv)
{
    Options o;
    ns3::CommandLine cmd;
    cmd.AddValue("standard", "g, n (MCS 7, 20 MHz) or ac (MCS 9, 80 MHz)", o.standard);
    cmd.AddValue("traffic", "tcp, or udp: a saturated uplink", o.traffic);
    cmd.AddValue("direction", "up or down", o.direction);
    cmd.AddValue("congestion", "cubic, rfc-cubic (RFC 9438 with its Reno-friendly region) or reno", o.congestion);
    cmd.AddValue("stations", "how many", o.stations);
    cmd.AddValue("topology", "equal (all hear each other), hidden (no two stations do) or row (neighbours do)", o.topology);
    cmd.AddValue("ampdu", "bytes of the longest A-MPDU; 0: none", o.ampdu);
    cmd.AddValue("amsdu", "bytes of the longest A-MSDU; 0: none", o.amsdu);
    cmd.AddValue("rts", "RTS/CTS", o.rts);
    cmd.AddValue("rts-above", "RTS/CTS for MPDUs above so many bytes", o.rtsAbove);
    cmd.AddValue("buffer", "packets that the access point queues", o.buffer);
    cmd.AddValue("station-queue", "packets that a station queues", o.stationQueue);
    cmd.AddValue("wired-queue", "packets that the wire queues, each way", o.wiredQueue);
    cmd.AddValue("wired-delay-ms", "delay of the wire, each way", o.wiredDelayMs);
    cmd.AddValue("megabytes", "per station; 0: endless", o.megabytes);
    cmd.AddValue("warmup", "seconds left out of endless traffic's figures", o.warmup);
    cmd.AddValue("measured", "seconds that endless traffic is measured for", o.measured);
    cmd.AddValue("spread", "seconds over which the starts are spread", o.spread);
    cmd.AddValue("limit", "simulated seconds after which a run is given up", o.limit);
    cmd.AddValue("seed", "which run", o.seed);
    cmd.AddValue("frames", "count what is on the air, by kind", o.frames);
    cmd.AddValue("events", "file for what happens to each connection", o.events);
    cmd.AddValue("pcap", "prefix of packet captures", o.pcap);
    cmd.Parse(argc, argv);
    Check(o);
    return o;
}
