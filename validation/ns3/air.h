// SPDX-License-Identifier: MIT OR GPL-2.0-only
// What happens on the air and in the queues of a network.
#ifndef WAKEAI_NS3_AIR_H
#define WAKEAI_NS3_AIR_H

#include "network.h"

#include <map>
#include <string>

class Air
{
  public:
    // `frames`: also count what is sent, by kind; costs some speed.
    Air(const Network& network, bool contention, bool frames);

    void BeginMeasuring();

    // Data frames (RTS where they are used) that stations sent, and those without an answer.
    uint64_t Attempted(bool rts) const { return rts ? m_rtsSent : m_dataSent; }
    uint64_t Failed(bool rts) const { return rts ? m_rtsFailed : m_dataFailed; }
    // Packets that the access point had no room for.
    uint64_t AccessPointDrops() const { return m_accessPointDrops; }
    // Packets that a station or the server had no room for.
    uint64_t OtherDrops() const { return m_otherDrops; }
    // {"kind from": [frames, MPDUs, seconds on the air, most MPDUs at once]}
    std::string FramesJson() const;

  private:
    struct Kind
    {
        uint64_t frames = 0;
        uint64_t mpdus = 0;
        uint32_t most = 0;
        double seconds = 0;
    };

    void Sending(bool accessPoint,
                 ns3::WifiPhyBand band,
                 ns3::WifiConstPsduMap psdus,
                 ns3::WifiTxVector vector,
                 double watts);
    void DataFailed(ns3::Mac48Address) { ++m_dataFailed; }
    void RtsFailed(ns3::Mac48Address) { ++m_rtsFailed; }
    void AccessPointDropped(ns3::Ptr<const ns3::Packet>) { ++m_accessPointDrops; }
    void OtherDropped(ns3::Ptr<const ns3::Packet>) { ++m_otherDrops; }
    void Watch(ns3::Ptr<ns3::NetDevice> device, bool accessPoint);

    uint64_t m_dataSent = 0;
    uint64_t m_dataFailed = 0;
    uint64_t m_rtsSent = 0;
    uint64_t m_rtsFailed = 0;
    uint64_t m_accessPointDrops = 0;
    uint64_t m_otherDrops = 0;
    bool m_frames;
    std::map<std::string, Kind> m_kinds;
};

#endif
