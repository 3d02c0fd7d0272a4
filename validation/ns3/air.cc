// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "air.h"

#include "ns3/traffic-control-module.h"

#include <sstream>

using namespace ns3;

namespace
{

// Data with a TCP segment or datagram of full size, or a small packet: bare ACKs, SYNs.
const uint32_t SMALL = 200;

std::string
KindOf(const WifiPsdu& psdu)
{
    const WifiMacHeader& header = psdu.GetHeader(0);
    if (header.IsBeacon())
        return "beacon";
    if (header.IsMgt())
        return "management";
    if (header.IsRts())
        return "RTS";
    if (header.IsCts())
        return "CTS";
    if (header.IsBlockAckReq())
        return "BlockAckReq";
    if (header.IsBlockAck())
        return "BlockAck";
    if (header.IsAck())
        return "ACK";
    if (!header.HasData())
        return "other";
    return psdu.GetSize() / psdu.GetNMpdus() > SMALL ? "data" : "small data";
}

} // namespace

Air::Air(const Network& network, bool contention, bool frames)
    : m_frames(frames)
{
    for (uint32_t i = 0; i < network.stationDevices.GetN(); ++i)
    {
        if (contention || frames)
            Watch(network.stationDevices.Get(i), false);
        network.stations.Get(i)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            MakeCallback(&Air::OtherDropped, this));
    }
    if (frames)
        Watch(network.accessPointDevice.Get(0), true);
    // Without a queueing discipline a full Wi-Fi queue shows here: the layer is told to stop.
    network.accessPoint.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        MakeCallback(&Air::AccessPointDropped, this));
    network.server.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop",
        MakeCallback(&Air::OtherDropped, this));
}

void
Air::Watch(Ptr<NetDevice> device, bool accessPoint)
{
    Ptr<WifiNetDevice> wifi = DynamicCast<WifiNetDevice>(device);
    Ptr<WifiPhy> phy = wifi->GetPhy();
    phy->TraceConnectWithoutContext(
        "PhyTxPsduBegin",
        MakeCallback(&Air::Sending, this).Bind(accessPoint, phy->GetPhyBand()));
    if (accessPoint)
        return;
    Ptr<WifiRemoteStationManager> manager = wifi->GetRemoteStationManager();
    manager->TraceConnectWithoutContext("MacTxDataFailed", MakeCallback(&Air::DataFailed, this));
    manager->TraceConnectWithoutContext("MacTxRtsFailed", MakeCallback(&Air::RtsFailed, this));
}

void
Air::Sending(bool accessPoint,
             WifiPhyBand band,
             WifiConstPsduMap psdus,
             WifiTxVector vector,
             double)
{
    Ptr<const WifiPsdu> psdu = psdus.begin()->second;
    const WifiMacHeader& header = psdu->GetHeader(0);
    if (!accessPoint)
    {
        m_dataSent += header.HasData() ? 1 : 0;
        m_rtsSent += header.IsRts() ? 1 : 0;
    }
    if (!m_frames)
        return;
    Kind& kind = m_kinds[KindOf(*psdu) + (accessPoint ? " from access point" : " from station")];
    const uint32_t mpdus = psdu->GetNMpdus();
    ++kind.frames;
    kind.mpdus += mpdus;
    kind.most = std::max(kind.most, mpdus);
    kind.seconds += WifiPhy::CalculateTxDuration(psdu->GetSize(), vector, band).GetSeconds();
}

void
Air::BeginMeasuring()
{
    m_dataSent = m_dataFailed = m_rtsSent = m_rtsFailed = 0;
    m_kinds.clear();
}

std::string
Air::FramesJson() const
{
    std::ostringstream out;
    const char* comma = "";
    out << '{';
    for (const auto& [name, kind] : m_kinds)
    {
        out << comma << '"' << name << "\":[" << kind.frames << ',' << kind.mpdus << ','
            << kind.seconds << ',' << kind.most << ']';
        comma = ",";
    }
    out << '}';
    return out.str();
}
