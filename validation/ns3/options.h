// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What one run is asked for on the command line.
#ifndef WAKEAI_NS3_OPTIONS_H
#define WAKEAI_NS3_OPTIONS_H

#include <cstdint>
#include <string>

struct Options
{
    std::string standard = "g";    // g, n (MCS 7, 20 MHz), ac (MCS 9, 80 MHz): one stream, 800 ns
    std::string traffic = "tcp";   // tcp, or udp: a saturated uplink
    std::string direction = "up";  // up: stations send; down: the server sends
    std::string congestion = "cubic"; // cubic (ns-3's own), rfc-cubic, reno (as in Linux)
    uint32_t stations = 1;
    std::string topology = "equal"; // who hears whom beside the access point: equal (all), hidden (nobody),
                                   // row (each station its neighbours in a row)
    uint32_t ampdu = 65535;        // bytes of the longest A-MPDU; 0: none
    uint32_t amsdu = 0;            // bytes of the longest A-MSDU; 0: none
    bool rts = false;              // RTS/CTS
    uint32_t rtsAbove = 0;         // ... for MPDUs above so many bytes
    uint32_t buffer = 300;         // packets that the access point queues
    uint32_t stationQueue = 5000;  // packets that a station queues
    uint32_t wiredQueue = 1000;    // packets, each way
    double wiredDelayMs = 1;       // each way
    double megabytes = 10;         // per station, 10^6 bytes each; 0: endless
    double warmup = 2;             // seconds left out of the goodput of endless traffic
    double measured = 10;          // seconds that endless traffic is measured for
    double spread = 0.1;           // the starts are uniform in so many seconds
    double limit = 2000;           // simulated seconds after which a run is given up
    uint32_t seed = 1;
    bool frames = false;           // count what is on the air, by kind
    std::string events;            // file for what happens to each connection, or none
    std::string pcap;              // prefix of packet captures, or none

    bool Sized() const { return traffic == "tcp" && megabytes > 0; }
    bool Up() const { return direction == "up"; }
    uint64_t Bytes() const { return static_cast<uint64_t>(megabytes * 1e6); }
};

// Reads them, or ends the program with a message.
Options ReadOptions(int argc, char** argv);

#endif
