// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "network.h"

#include "ns3/mobility-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

struct Radio80211
{
    WifiStandard standard;
    const char* channel;
    const char* dataMode;
    const char* controlMode;
};

Radio80211
RadioOf(const std::string& standard)
{
    if (standard == "n")
        return {WIFI_STANDARD_80211n, "{0, 20, BAND_5GHZ, 0}", "HtMcs7", "OfdmRate24Mbps"};
    if (standard == "ac")
        return {WIFI_STANDARD_80211ac, "{0, 80, BAND_5GHZ, 0}", "VhtMcs9", "OfdmRate24Mbps"};
    return {WIFI_STANDARD_80211g,
            "{0, 20, BAND_2_4GHZ, 0}",
            "ErpOfdmRate54Mbps",
            "ErpOfdmRate24Mbps"};
}

// What a frame loses on its way between two that hear each other: 16.0206 dBm (ns-3's power) become -50.
const double HEARD_DB = 66.0206;
const double UNHEARD_DB = 300;

void
Aggregate(WifiMacHelper& mac,
          const std::string& type,
          Ssid ssid,
          bool accessPoint,
          const Options& options)
{
    if (accessPoint)
        mac.SetType(type,
                    "Ssid",
                    SsidValue(ssid),
                    "BE_MaxAmpduSize",
                    UintegerValue(options.ampdu),
                    "BE_MaxAmsduSize",
                    UintegerValue(options.amsdu));
    else
        mac.SetType(type,
                    "Ssid",
                    SsidValue(ssid),
                    "BE_MaxAmpduSize",
                    UintegerValue(options.ampdu),
                    "BE_MaxAmsduSize",
                    UintegerValue(options.amsdu),
                    "MaxMissedBeacons",
                    // Beacons collide too where 40 stations are saturated; nobody leaves for that.
                    UintegerValue(1000000));
}

} // namespace

Network::Network(const Options& options)
{
    stations.Create(options.stations);
    accessPoint.Create(1);
    server.Create(1);
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100000)));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize",
                       QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.stationQueue)));
    Radio(options);
    Wire(options);
}

void
Network::Radio(const Options& options)
{
    const Radio80211 radio = RadioOf(options.standard);
    Ptr<MatrixPropagationLossModel> losses = CreateObject<MatrixPropagationLossModel>();
    losses->SetDefaultLoss(options.topology == "equal" ? HEARD_DB : UNHEARD_DB);
    Ptr<YansWifiChannel> channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    channel->SetPropagationLossModel(losses);
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.Set("ChannelSettings", StringValue(radio.channel));
    WifiHelper wifi;
    wifi.SetStandard(radio.standard);
    wifi.SetRemoteStationManager(
        "ns3::ConstantRateWifiManager",
        "DataMode",
        StringValue(radio.dataMode),
        "ControlMode",
        StringValue(radio.controlMode),
        "RtsCtsThreshold",
        UintegerValue(options.rts ? options.rtsAbove : 4692480),
        // Seven attempts for every frame, whichever of ns-3's two counters it falls under.
        "MaxSsrc",
        UintegerValue(7),
        "MaxSlrc",
        UintegerValue(7));
    WifiMacHelper mac;
    Aggregate(mac, "ns3::StaWifiMac", Ssid("wakeai"), false, options);
    stationDevices = wifi.Install(phy, mac, stations);
    Aggregate(mac, "ns3::ApWifiMac", Ssid("wakeai"), true, options);
    accessPointDevice = wifi.Install(phy, mac, accessPoint);
    DataQueue(accessPointDevice.Get(0))
        ->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, options.buffer));
    MobilityHelper place; // all at the origin: no propagation delay
    place.Install(NodeContainer(stations, accessPoint));
    Hear(options, losses);
    if (!options.pcap.empty())
        phy.EnablePcap(options.pcap, accessPointDevice);
}

void
Network::Hear(const Options& options, Ptr<MatrixPropagationLossModel> losses)
{
    if (options.topology == "equal")
        return;
    auto placeOf = [](Ptr<Node> node) { return node->GetObject<MobilityModel>(); };
    for (uint32_t i = 0; i < stations.GetN(); ++i)
    {
        losses->SetLoss(placeOf(stations.Get(i)), placeOf(accessPoint.Get(0)), HEARD_DB);
        if (options.topology == "row" && i > 0)
            losses->SetLoss(placeOf(stations.Get(i)), placeOf(stations.Get(i - 1)), HEARD_DB);
    }
}

void
Network::Wire(const Options& options)
{
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    wire.SetChannelAttribute("Delay", TimeValue(Seconds(options.wiredDelayMs / 1e3)));
    wire.SetQueue("ns3::DropTailQueue",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.wiredQueue)));
    NetDeviceContainer leg = wire.Install(accessPoint.Get(0), server.Get(0));

    InternetStackHelper internet;
    internet.Install(NodeContainer(stations, accessPoint, server));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    Ipv4Address gateway =
        addresses.Assign(NetDeviceContainer(accessPointDevice)).GetAddress(0);
    Ipv4InterfaceContainer inside = addresses.Assign(stationDevices);
    addresses.SetBase("10.1.0.0", "255.255.255.0");
    Ipv4InterfaceContainer outside = addresses.Assign(leg);
    serverAddress = outside.GetAddress(1);
    // An address brings a queueing discipline with it.
    TrafficControlHelper::Default().Uninstall(
        NetDeviceContainer(NetDeviceContainer(accessPointDevice, stationDevices), leg));

    Ipv4StaticRoutingHelper routing;
    auto defaultRoute = [&](Ptr<Node> node, Ipv4Address next) {
        routing.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(next, 1);
    };
    for (uint32_t i = 0; i < stations.GetN(); ++i)
    {
        stationAddresses.push_back(inside.GetAddress(i));
        defaultRoute(stations.Get(i), gateway);
    }
    defaultRoute(server.Get(0), outside.GetAddress(0));
}

namespace
{

void
Know(Ptr<NetDevice> device, Ipv4Address address, Address mac)
{
    Ptr<Ipv4L3Protocol> ip = device->GetNode()->GetObject<Ipv4L3Protocol>();
    Ptr<Ipv4Interface> interface = ip->GetInterface(ip->GetInterfaceForDevice(device));
    ArpCache::Entry* entry = interface->GetArpCache()->Add(address);
    entry->SetMacAddress(mac);
    entry->MarkPermanent();
}

} // namespace

void
Network::AnswerArp()
{
    Ptr<NetDevice> ap = accessPointDevice.Get(0);
    Ptr<Ipv4> ip = ap->GetNode()->GetObject<Ipv4>();
    Ipv4Address gateway = ip->GetAddress(ip->GetInterfaceForDevice(ap), 0).GetLocal();
    for (uint32_t i = 0; i < stations.GetN(); ++i)
    {
        Know(stationDevices.Get(i), gateway, ap->GetAddress());
        Know(ap, stationAddresses[i], stationDevices.Get(i)->GetAddress());
    }
}

uint32_t
Network::Joined() const
{
    uint32_t joined = 0;
    for (uint32_t i = 0; i < stationDevices.GetN(); ++i)
    {
        Ptr<WifiNetDevice> device = DynamicCast<WifiNetDevice>(stationDevices.Get(i));
        joined += DynamicCast<StaWifiMac>(device->GetMac())->IsAssociated() ? 1 : 0;
    }
    return joined;
}

Ptr<WifiMacQueue>
Network::DataQueue(Ptr<NetDevice> device)
{
    Ptr<WifiMac> mac = DynamicCast<WifiNetDevice>(device)->GetMac();
    Ptr<Txop> txop = mac->GetTxop();
    if (mac->GetQosSupported())
        txop = mac->GetQosTxop(AC_BE);
    return txop->GetWifiMacQueue();
}
