// SPDX-License-Identifier: MIT OR GPL-2.0-only
// One BSS and one server behind a wire: the setting that figures are compared in.
//
// Every station hears every other equally (-50 dBm), unless --topology hides some: then those receive
// nothing of each other. There is no capture and no channel error. No queueing discipline lies above the devices: the access point's Wi-Fi queue is a
// plain FIFO with tail drop, and packets do not expire in it (ns-3's default of 0.5 s would be an
// active queue management that nobody asked for). ARP is answered beforehand.
#ifndef WAKEAI_NS3_NETWORK_H
#define WAKEAI_NS3_NETWORK_H

#include "options.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

struct Network
{
    ns3::NodeContainer stations;
    ns3::NodeContainer accessPoint;
    ns3::NodeContainer server;
    ns3::NetDeviceContainer stationDevices;
    ns3::NetDeviceContainer accessPointDevice;
    std::vector<ns3::Ipv4Address> stationAddresses;
    ns3::Ipv4Address serverAddress;

    explicit Network(const Options& options);

    // How many stations have joined the access point by now.
    uint32_t Joined() const;
    // Fills every ARP cache, once all have joined: a station's is emptied when it does. Else the first
    // packets of each would be requests, whose answers wait in the access point's queue.
    void AnswerArp();
    // The queue that data frames of a device wait in.
    static ns3::Ptr<ns3::WifiMacQueue> DataQueue(ns3::Ptr<ns3::NetDevice> device);

  private:
    void Radio(const Options& options);
    // Lets those hear each other that the topology lets.
    void Hear(const Options& options, ns3::Ptr<ns3::MatrixPropagationLossModel> losses);
    void Wire(const Options& options);
};

#endif
