// SPDX-License-Identifier: MIT OR GPL-2.0-only
// One run of one case in ns-3, its figures as one line of JSON on standard output.
#include "air.h"
#include "network.h"
#include "options.h"
#include "tcp-flow.h"
#include "udp-source.h"

#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <sys/resource.h>
#include <vector>

using namespace ns3;

namespace
{

// Time for every station to join the access point before the traffic begins.
const double JOIN_SECONDS = 3;

uint32_t flowsLeft;

void
FlowDone()
{
    if (--flowsLeft == 0)
        Simulator::Stop();
}

struct Traffic
{
    std::vector<std::unique_ptr<TcpFlow>> flows;
    std::vector<std::unique_ptr<UdpSource>> sources;
    std::unique_ptr<UdpSink> sink;

    uint64_t Measured() const
    {
        uint64_t bytes = sink ? sink->Bytes() : 0;
        for (const auto& flow : flows)
            bytes += flow->Measured();
        return bytes;
    }

    void BeginMeasuring()
    {
        if (sink)
            sink->BeginMeasuring();
        for (const auto& flow : flows)
            flow->BeginMeasuring();
    }
};

Traffic
MakeTraffic(const Network& network, const Options& options, std::ofstream* events)
{
    Traffic traffic;
    Ptr<UniformRandomVariable> spread = CreateObject<UniformRandomVariable>();
    if (options.traffic == "udp")
        traffic.sink = std::make_unique<UdpSink>(network.server.Get(0), 9);
    for (uint32_t i = 0; i < options.stations; ++i)
    {
        const Time start = Seconds(JOIN_SECONDS + spread->GetValue(0, options.spread));
        Ptr<Node> station = network.stations.Get(i);
        if (options.traffic == "udp")
        {
            Ptr<WifiMacQueue> queue = Network::DataQueue(network.stationDevices.Get(i));
            traffic.sources.push_back(std::make_unique<UdpSource>(
                station, queue, InetSocketAddress(network.serverAddress, 9)));
            Simulator::Schedule(start, &UdpSource::Start, traffic.sources.back().get());
            continue;
        }
        Ptr<Node> server = network.server.Get(0);
        traffic.flows.push_back(std::make_unique<TcpFlow>(
            i,
            options.Up() ? station : server,
            options.Up() ? server : station,
            options.Up() ? network.serverAddress : network.stationAddresses[i],
            options,
            events));
        Simulator::Schedule(start, &TcpFlow::Start, traffic.flows.back().get());
    }
    return traffic;
}

double
CpuSeconds()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& t) { return t.tv_sec + t.tv_usec / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long
PeakKilobytes()
{
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

std::string
FlowsJson(const Traffic& traffic)
{
    std::ostringstream out;
    out.precision(9);
    const char* comma = "";
    out << '[';
    for (const auto& flow : traffic.flows)
    {
        out << comma << "{\"completion_s\":";
        if (flow->Done())
            out << flow->CompletionSeconds();
        else
            out << "null";
        out << ",\"open_s\":" << flow->OpenSeconds() << ",\"syns\":" << flow->Syns()
            << ",\"timeouts\":" << flow->Timeouts()
            << ",\"stall_s\":" << flow->LongestStallSeconds()
            << ",\"bytes\":" << flow->Received() << '}';
        comma = ",";
    }
    out << ']';
    return out.str();
}

void
Print(const Options& o, const Network& network, const Traffic& traffic, const Air& air)
{
    const double simulated = Simulator::Now().GetSeconds() - JOIN_SECONDS;
    std::cout.precision(9);
    std::cout << "{\"standard\":\"" << o.standard << "\",\"traffic\":\"" << o.traffic
              << "\",\"direction\":\"" << o.direction
              << "\",\"congestion\":\"" << o.congestion << "\",\"stations\":" << o.stations
              << ",\"rts\":" << (o.rts ? "true" : "false") << ",\"buffer\":" << o.buffer
              << ",\"megabytes\":" << o.megabytes << ",\"seed\":" << o.seed
              << ",\"simulated_s\":" << simulated;
    // Keys that rows of earlier versions do not have.
    if (o.topology != "equal")
        std::cout << ",\"topology\":\"" << o.topology << '"';
    if (o.amsdu > 0 || o.ampdu != 65535)
        std::cout << ",\"ampdu\":" << o.ampdu << ",\"amsdu\":" << o.amsdu;
    if (traffic.sink && o.topology != "equal")
    {
        std::cout << ",\"station_mbps\":";
        const char* before = "[";
        for (const auto& address : network.stationAddresses)
        {
            std::cout << before << traffic.sink->BytesOf(address) * 8 / o.measured / 1e6;
            before = ",";
        }
        std::cout << ']';
    }
    if (!o.Sized())
    {
        std::cout << ",\"goodput_mbps\":" << traffic.Measured() * 8 / o.measured / 1e6;
        if (o.traffic == "udp")
            std::cout << ",\"attempted\":" << air.Attempted(o.rts)
                      << ",\"failed\":" << air.Failed(o.rts);
    }
    std::cout << ",\"access_point_drops\":" << air.AccessPointDrops()
              << ",\"other_drops\":" << air.OtherDrops();
    if (!traffic.flows.empty())
        std::cout << ",\"flows\":" << FlowsJson(traffic);
    if (o.frames)
        std::cout << ",\"frames\":" << air.FramesJson();
    std::cout << ",\"cpu_s\":" << CpuSeconds() << ",\"peak_kb\":" << PeakKilobytes() << "}"
              << std::endl;
}

} // namespace

int
main(int argc, char** argv)
{
    const Options options = ReadOptions(argc, argv);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(options.seed);
    SetTcpDefaults();
    Network network(options);
    Air air(network, options.traffic == "udp", options.frames);
    std::ofstream events;
    if (!options.events.empty())
        events.open(options.events);
    Traffic traffic = MakeTraffic(network, options, events.is_open() ? &events : nullptr);
    flowsLeft = options.stations;
    TcpFlow::onDone = FlowDone;
    Simulator::Schedule(Seconds(JOIN_SECONDS), [&network, &options] {
        if (network.Joined() != options.stations)
        {
            std::cerr << "wakeai-ns3: only " << network.Joined() << " stations joined\n";
            std::exit(1);
        }
        network.AnswerArp();
    });
    if (options.Sized())
    {
        Simulator::Stop(Seconds(JOIN_SECONDS + options.limit));
    }
    else
    {
        const double from = JOIN_SECONDS + options.warmup;
        Simulator::Schedule(Seconds(from), [&] {
            traffic.BeginMeasuring();
            air.BeginMeasuring();
        });
        Simulator::Stop(Seconds(from + options.measured));
    }
    Simulator::Run();
    Print(options, network, traffic, air);
    return 0;
}
